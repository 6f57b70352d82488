// The number of threads of one call, for programs in which several callers share the process.
#pragma once

namespace fovea {

// While it lives, parallel work that this thread starts uses `count` threads; 0 leaves the number as it is.
// Results do not depend on it. Lives on the stack, innermost last.
class ThreadLimit {
 public:
  // Throws Error unless count is 0 to 1024.
  explicit ThreadLimit(int count);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

}  // namespace fovea
