// The threads behind parallel_chunks: started when first needed, kept until the process ends, shared by all
// callers.
//
// A worker without work spins for some tens of microseconds (the next piece of a training step usually comes
// sooner) and then sleeps; so does a caller that waits for a piece still under way. On a machine with other
// work, a thread that spins for long takes the core from the very thread it waits for. A caller never waits
// for a worker that has not begun: it does the work itself and closes the job when nothing is left.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/parallel.h"

namespace fovea {

// CPUs this process may run on, at least 1.
int available_cpus();

class WorkerPool {
 public:
  // The pool of this process. A forked child gets one of its own: threads do not survive a fork.
  static WorkerPool& instance();

  // One caller has the pool at a time.
  bool try_acquire() { return !taken_.exchange(true, std::memory_order_acquire); }
  void release() { taken_.store(false, std::memory_order_release); }

  // Calls part(0) on this thread and part(i), i = 1, 2, ..., on up to `helpers` workers, each i at most once:
  // a worker that comes after part(0) has returned is not let in. Returns when all calls have. `part` must
  // not throw. To be called by the thread that acquired the pool.
  void run(int helpers, FunctionRef<void(int)> part);

 private:
  // What the workers watch. One word, so that a worker cannot enter a job while it is being closed:
  // number of the job << 32 | open << 31 | workers that have entered << 16 | workers still inside.
  using State = uint64_t;
  static constexpr State kInside = 1, kEntered = 1 << 16, kOpen = State{1} << 31, kJob = State{1} << 32;
  static int inside(State state) { return static_cast<int>(state & 0xffff); }
  static int entered(State state) { return static_cast<int>(state >> 16 & 0x7fff); }
  static State job(State state) { return state / kJob; }

  WorkerPool() : cpus_(available_cpus()) {}
  int start_workers(int count);
  void work();
  // Whether a job is open that this worker has not seen; its number is then noted in `seen`.
  bool sees_job(State& state, State& seen) const;
  void sleep_until_job(State seen);
  void wake_sleepers(int helpers);
  void wait_until_all_left();

  static std::atomic<WorkerPool*> current_;

  const int cpus_;
  std::atomic<bool> taken_{false};
  std::atomic<int> workers_{0}, helpers_{0};
  const FunctionRef<void(int)>* part_ = nullptr;  // of the open job
  alignas(64) std::atomic<State> state_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::mutex mutex_;
  std::condition_variable job_opened_, all_left_;
};

}  // namespace fovea
