// Threads of the host instead of Fovea's own, for a process that has a pool already: threads of two pools that wait for work
// take the cores from each other.
#pragma once

#include "base/parallel.h"

namespace fovea {

// Calls part(i), each i in [0, threads) at most once, on threads of the host, part(0) on the calling one; returns when
// all calls have. Fewer threads than requested are allowed. Must not throw; `part` does not.
using RunOnHostThreads = void (*)(int threads, FunctionRef<void(int)> part);

// While it lives, parallel work that this thread starts runs through `run`; null leaves it as it is. Results do not depend on
// it. Lives on the stack, innermost last.
class HostThreads {
 public:
  explicit HostThreads(RunOnHostThreads run);
  ~HostThreads();
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

 private:
  RunOnHostThreads before_;
};

}  // namespace fovea
