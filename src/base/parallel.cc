#include "base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace fovea {
namespace {

std::atomic<int> g_threads{0};
thread_local bool t_inside = false;
thread_local int t_index = 0;

int default_threads() {
  return std::max(1, omp_get_num_procs());
}

// Takes chunks until none is left; keeps the first exception.
class Job {
 public:
  Job(int64_t chunks, FunctionRef<void(int64_t)> body) : chunks_(chunks), body_(body) {}

  void work(int index) {
    const bool was_inside = std::exchange(t_inside, true);
    const int was_index = std::exchange(t_index, index);
    try {
      for (int64_t chunk; (chunk = next_.fetch_add(1, std::memory_order_relaxed)) < chunks_;) body_(chunk);
    } catch (...) {
      next_.store(chunks_, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    t_inside = was_inside;
    t_index = was_index;
  }
  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const int64_t chunks_;
  const FunctionRef<void(int64_t)> body_;
  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void set_num_threads(int count) {
  require(count >= 0 && count <= 1024, "threads: got ", count, ", wanted 1 to 1024, or 0 for one per core");
  g_threads.store(count == 0 ? default_threads() : count);
}

int num_threads() {
  const int count = g_threads.load();
  return count > 0 ? count : default_threads();
}

int thread_index() {
  return t_index;
}

void parallel_chunks(int64_t chunks, FunctionRef<void(int64_t)> body) {
  const int threads = static_cast<int>(std::min<int64_t>(num_threads(), chunks));
  if (t_inside || threads <= 1) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  Job job(chunks, body);
#ifdef FOVEA_STD_THREADS
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back([&job, i] { job.work(i); });
  job.work(0);
  for (std::thread& helper : helpers) helper.join();
#else
#pragma omp parallel num_threads(threads)
  job.work(omp_get_thread_num());
#endif
  job.rethrow();
}

void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  FOVEA_ASSERT(grain > 0);
  if (count <= grain) {
    if (count > 0) body(0, count);
    return;
  }
  parallel_chunks((count + grain - 1) / grain,
                  [&](int64_t chunk) { body(chunk * grain, std::min(count, (chunk + 1) * grain)); });
}

}  // namespace fovea
