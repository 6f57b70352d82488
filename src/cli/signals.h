// Ctrl-C and SIGTERM as a wish to stop: long work finishes its step, saves and ends.
#pragma once

namespace fovea::cli {

// While one lives, the first SIGINT or SIGTERM is only remembered; a second one, half a second later or more,
// ends the process at once. A file that grows past its limit is then an error like a full disk, not a signal.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came, or 0.
  static int received();
};

// The exit status of work that a signal cut short: 130 after Ctrl-C, 143 after SIGTERM, as shells have it.
int interrupted_status(int signal);

}  // namespace fovea::cli
