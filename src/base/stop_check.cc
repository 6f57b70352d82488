#include "base/stop_check.h"

#include <utility>

#include "base/error_kinds.h"

namespace fovea {
namespace {

thread_local StopCheck* t_check = nullptr;

constexpr auto kInterval = std::chrono::milliseconds(50);

}  // namespace

StopCheck::StopCheck(std::function<bool()> should_stop)
    : should_stop_(std::move(should_stop)), before_(t_check) {
  if (should_stop_) t_check = this;
}

StopCheck::~StopCheck() {
  t_check = before_;
}

void check_stop() {
  if (t_check == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < t_check->next_) return;
  t_check->next_ = now + kInterval;
  if (t_check->should_stop_()) throw Interrupted("stopped before the end, as requested");
}

}  // namespace fovea
