// Threads: one pool for the whole process, and results that never depend on its size.
//
// Work is cut into chunks by its shape alone. Which thread runs a chunk is left open; what a chunk computes
// is not. Sums across chunks are the caller's to make, in chunk order.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace fovea {

// Threads used by parallel_for from now on; at least 1. 0 asks for one per core of this process.
void set_num_threads(int count);
int num_threads();

// A call-through to any callable, valid as long as the callable lives: no allocation, no weak symbols.
template <class Signature>
class FunctionRef;
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): meant to be passed a lambda
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

// Runs body(chunk) for every chunk in [0, chunks), on up to num_threads() threads, chunks handed out in
// order. An exception thrown by a chunk is rethrown here after all have ended. Inside a parallel_for it runs
// serially, and so it does while another thread of the host uses the pool.
void parallel_chunks(int64_t chunks, FunctionRef<void(int64_t chunk)> body);

// Runs body(begin, end) over [0, count) cut into pieces of `grain` (the last one shorter).
void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body);

// The running thread's number inside parallel_chunks, in [0, num_threads()): for scratch memory, never for
// results.
int thread_index();

}  // namespace fovea
