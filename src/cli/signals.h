// Ctrl-C, SIGTERM and SIGHUP as a request to stop: long work finishes its step, saves and ends.
#pragma once

#include <csignal>
#include <thread>

namespace fovea::cli {

// While one lives, the first SIGINT, SIGTERM or SIGHUP is only remembered; a second one, half a second later
// or more, ends the process at once. A signal that was ignored before stays ignored, as SIGHUP is under
// nohup. A file that grows past its limit is then an error like a full disk, not a signal.
//
// No signal handler runs: the signals are blocked and a thread waits for them. (Code that keeps something
// other than a stack in the stack register for a moment would otherwise have its memory overwritten by the
// handler's frame.) To be made on the main thread while no other thread exists but those of base/parallel.h,
// which receive no signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came, or 0.
  static int received();

 private:
  sigset_t mask_before_;
  std::thread watcher_;
};

// The exit status of work that a signal cut short, as shells have it: 129 after SIGHUP, 130 after Ctrl-C, 143
// after SIGTERM.
int interrupted_status(int signal);

}  // namespace fovea::cli
