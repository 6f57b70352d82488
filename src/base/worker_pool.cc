// Starts worker threads, hands them jobs, lets them spin briefly between jobs and then sleep.
#include "base/worker_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/blocked_signals.h"

namespace fovea {
namespace {

// Longer than the gap between two parallel pieces of most training steps, far shorter than a time slice.
constexpr auto kSpin = std::chrono::microseconds(50);

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether done() came true within kSpin.
template <class Done>
bool spin_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

int available_cpus() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) return std::max(1, CPU_COUNT(&mine));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::atomic<WorkerPool*> WorkerPool::current_{nullptr};

WorkerPool& WorkerPool::instance() {
  if (WorkerPool* pool = current_.load(std::memory_order_acquire)) return *pool;
  // Never deleted: workers may read it until the process is gone. In a forked child the parent's pool,
  // whose locks may be held by threads that are no more, is left alone.
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    static WorkerPool* of_parent;  // stays reachable for leak checkers
    of_parent = current_.exchange(nullptr);
    (void)of_parent;
  });
  (void)registered;
  auto* made = new WorkerPool();
  WorkerPool* other = nullptr;
  if (current_.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *other;
}

void WorkerPool::run(int helpers, FunctionRef<void(int)> part) {
  helpers = std::min(helpers, start_workers(helpers));
  part_ = &part;
  helpers_.store(helpers, std::memory_order_relaxed);
  // Sequentially consistent here and where workers fall asleep: either they see the job, or they are seen to
  // sleep.
  state_.store((job(state_.load(std::memory_order_relaxed)) + 1) * kJob | kOpen);
  wake_sleepers(helpers);
  part(0);
  state_.fetch_and(~kOpen);
  wait_until_all_left();
}

// Starts what is missing; how many there are then. Fewer than requested where the system refuses.
int WorkerPool::start_workers(int count) {
  int have = workers_.load(std::memory_order_relaxed);
  if (have >= count) return have;
  const BlockedSignals blocked;  // signals go to the host's own threads
  try {
    for (; have < count; ++have) std::thread([this] { work(); }).detach();
  } catch (const std::system_error&) {
  }
  workers_.store(have, std::memory_order_relaxed);
  return have;
}

bool WorkerPool::sees_job(State& state, State& seen) const {
  state = state_.load();
  if ((state & kOpen) == 0 || job(state) == seen) return false;
  return true;
}

void WorkerPool::work() {
  State seen = 0;
  for (;;) {
    State state = 0;
    // With more threads than CPUs, spinning would only delay the others.
    const bool spins = workers_.load(std::memory_order_relaxed) < cpus_;
    if (!(spins ? spin_until([&] { return sees_job(state, seen); }) : sees_job(state, seen))) {
      sleep_until_job(seen);
      continue;
    }
    if (entered(state) >= helpers_.load(std::memory_order_relaxed)) {
      seen = job(state);
      continue;
    }
    if (!state_.compare_exchange_weak(state, state + kEntered + kInside)) continue;
    seen = job(state);
    (*part_)(entered(state) + 1);
    state_.fetch_sub(kInside);
    if (caller_sleeps_.load()) {
      const std::lock_guard lock(mutex_);
      all_left_.notify_all();
    }
  }
}

void WorkerPool::sleep_until_job(State seen) {
  std::unique_lock lock(mutex_);
  ++sleepers_;
  State state = 0;
  job_opened_.wait(lock, [&] { return sees_job(state, seen); });
  --sleepers_;
}

void WorkerPool::wake_sleepers(int helpers) {
  const int asleep = sleepers_.load();
  const int awake = workers_.load(std::memory_order_relaxed) - asleep;
  if (asleep == 0 || awake >= helpers) return;
  const std::lock_guard lock(mutex_);
  for (int i = awake; i < helpers; ++i) job_opened_.notify_one();
}

void WorkerPool::wait_until_all_left() {
  const auto all_left = [this] { return inside(state_.load()) == 0; };
  if (all_left()) return;
  if (workers_.load(std::memory_order_relaxed) < cpus_ && spin_until(all_left)) return;
  std::unique_lock lock(mutex_);
  caller_sleeps_.store(true);
  all_left_.wait(lock, all_left);
  caller_sleeps_.store(false);
}

}  // namespace fovea
