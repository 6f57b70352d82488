#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/host_threads.h"
#include "base/thread_limit.h"
#include "base/worker_pool.h"

namespace fovea {
namespace {

std::atomic<int> g_threads{0};
thread_local bool t_inside = false;
thread_local int t_index = 0;
thread_local int t_limit = 0;  // threads of this thread's calls; 0: as set_num_threads() says
thread_local RunOnHostThreads t_host = nullptr;

// While one lives this thread runs chunks, as number `index` of those that do, under their caller's limit.
class InsideChunks {
 public:
  InsideChunks(int index, int limit)
      : was_inside_(std::exchange(t_inside, true)),
        was_index_(std::exchange(t_index, index)),
        was_limit_(std::exchange(t_limit, limit)) {}
  ~InsideChunks() {
    t_inside = was_inside_;
    t_index = was_index_;
    t_limit = was_limit_;
  }
  InsideChunks(const InsideChunks&) = delete;
  InsideChunks& operator=(const InsideChunks&) = delete;

 private:
  const bool was_inside_;
  const int was_index_, was_limit_;
};

// Takes chunks [first, chunks) until none is left; keeps the first exception.
class Job {
 public:
  Job(int64_t first, int64_t chunks, FunctionRef<void(int64_t)> body)
      : chunks_(chunks), body_(body), limit_(t_limit), next_(first) {}

  void work(int index) {
    const InsideChunks inside(index, limit_);
    try {
      for (int64_t chunk; (chunk = next_.fetch_add(1, std::memory_order_relaxed)) < chunks_;) body_(chunk);
    } catch (...) {
      next_.store(chunks_, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const int64_t chunks_;
  const FunctionRef<void(int64_t)> body_;
  const int limit_;
  std::atomic<int64_t> next_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void set_num_threads(int count) {
  require(count >= 0 && count <= 1024, "threads: got ", count, ", wanted 1 to 1024, or 0 for one per core");
  g_threads.store(count == 0 ? available_cpus() : count);
}

ThreadLimit::ThreadLimit(int count) : before_(t_limit) {
  require(count >= 0 && count <= 1024, "threads: got ", count, ", wanted 1 to 1024, or 0 for no change");
  if (count > 0) t_limit = count;
}

ThreadLimit::~ThreadLimit() {
  t_limit = before_;
}

HostThreads::HostThreads(RunOnHostThreads run) : before_(t_host) {
  if (run != nullptr) t_host = run;
}

HostThreads::~HostThreads() {
  t_host = before_;
}

int num_threads() {
  if (t_limit > 0) return t_limit;
  const int count = g_threads.load();
  return count > 0 ? count : available_cpus();
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
  WorkerPool& pool = WorkerPool::instance();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (pool.try_acquire()) {
      Job job(chunk, chunks, body);
      const auto part = [&job](int index) { job.work(index); };
      // A host's team has always the same size, whatever there is to do: runtimes of OpenMP end and start threads when it changes.
      if (t_host != nullptr)
        t_host(num_threads(), part);
      else
        pool.run(threads - 1, part);
      pool.release();
      return job.rethrow();
    }
    // Another thread has the pool: this one goes on alone until it is free.
    const InsideChunks inside(0, t_limit);
    body(chunk);
  }
}

void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  require(grain > 0, "parallel_for: got pieces of ", grain, ", wanted 1 or more");
  if (count <= grain) {
    if (count > 0) body(0, count);
    return;
  }
  parallel_chunks((count + grain - 1) / grain,
                  [&](int64_t chunk) { body(chunk * grain, std::min(count, (chunk + 1) * grain)); });
}

}  // namespace fovea
