#include "cli/signals.h"

#include <pthread.h>

#include <atomic>
#include <chrono>

namespace fovea::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> g_received{0};
std::atomic<bool> g_ending{false};

// `timeout` and some shells send a signal to the process and again to its group: what follows this soon is
// the same request, not an impatient second one.
constexpr auto kSameRequest = std::chrono::milliseconds(500);

// Tells the watcher to end. Does nothing by default and is sent by nobody else.
constexpr int kWake = SIGURG;

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void end_process(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::raise(signal);
}

void watch(sigset_t watched) {
  Clock::time_point first;
  for (int signal = 0; sigwait(&watched, &signal) == 0 && !g_ending;) {
    if (signal == kWake) continue;
    if (g_received == 0) {
      first = Clock::now();
      g_received = signal;
    } else if (Clock::now() - first > kSameRequest) {
      end_process(signal);
    }
  }
}

}  // namespace

StopSignals::StopSignals() {
  g_received = 0;
  g_ending = false;
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, kWake);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(signal)) sigaddset(&watched, signal);
  pthread_sigmask(SIG_BLOCK, &watched, &mask_before_);
  watcher_ = std::thread(watch, watched);
}

StopSignals::~StopSignals() {
  g_ending = true;
  pthread_kill(watcher_.native_handle(), kWake);
  watcher_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  std::signal(SIGXFSZ, SIG_DFL);
}

int StopSignals::received() {
  return g_received;
}

int interrupted_status(int signal) {
  return 128 + signal;
}

}  // namespace fovea::cli
