// Ends long work from outside: a client that has gone away, Ctrl-C in a host program.
#pragma once

#include <chrono>
#include <functional>

namespace fovea {

// While it lives, long work that this thread runs (answers of a model folder, decoding) calls `should_stop` between its
// batches and steps, at most 20 times a second, and throws Interrupted once it returns true. An empty function is never
// called; what it throws goes to the caller. Lives on the stack, innermost last.
class StopCheck {
 public:
  explicit StopCheck(std::function<bool()> should_stop);
  ~StopCheck();
  StopCheck(const StopCheck&) = delete;
  StopCheck& operator=(const StopCheck&) = delete;

 private:
  friend void check_stop();

  std::function<bool()> should_stop_;
  std::chrono::steady_clock::time_point next_ = {};
  StopCheck* before_;
};

// Throws Interrupted when this thread's StopCheck says so: to be called between pieces of work that take milliseconds.
void check_stop();

}  // namespace fovea
