#include "cli/signals.h"

#include <time.h>

#include <csignal>

namespace fovea::cli {
namespace {

volatile std::sig_atomic_t g_received = 0;
volatile std::sig_atomic_t g_received_at = 0;  // tenths of a second of the monotonic clock

// `timeout` and some shells send a signal to the process and again to its group: what follows this soon is
// the same wish, not an impatient second one.
constexpr int kSameWish = 5;  // tenths of a second

int tenths() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int>(now.tv_sec % 100'000'000 * 10 + now.tv_nsec / 100'000'000);
}

void remember(int signal) {
  if (g_received == 0) {
    g_received = signal;
    g_received_at = tenths();
  } else if (tenths() - g_received_at > kSameWish) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

StopSignals::StopSignals() {
  g_received = 0;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
  std::signal(SIGXFSZ, SIG_IGN);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
}

int StopSignals::received() {
  return g_received;
}

int interrupted_status(int signal) {
  return 128 + signal;
}

}  // namespace fovea::cli
