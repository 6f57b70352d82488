// Finds the OpenMP runtime that a loaded library calls, and runs parallel work on it. No runtime is linked or loaded here: two of
// them in one process are what this avoids.
#include "python/openmp.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>
#include <pthread.h>

#include <atomic>
#include <string>

namespace nb = nanobind;

namespace fovea::python {
namespace {

// GOMP_parallel(function, data, threads, flags) is what GCC makes of `#pragma omp parallel`. The runtimes of LLVM and Intel have it too.
using Parallel = void (*)(void (*function)(void*), void* data, unsigned threads, unsigned flags);
using ThreadNumber = int (*)();

struct Runtime {
  std::atomic<Parallel> parallel{nullptr};  // null: not in use
  ThreadNumber thread_number = nullptr;
};
Runtime runtime;

void run_on_openmp(int threads, FunctionRef<void(int)> part) {
  runtime.parallel.load(std::memory_order_acquire)(
      [](void* data) { (*static_cast<FunctionRef<void(int)>*>(data))(runtime.thread_number()); }, &part,
      static_cast<unsigned>(threads), 0);
}

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// A library that is loaded already, closed again at the end; null name: what all libraries see first (the program, preloaded
// libraries).
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* name) : handle_(dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {}
  ~LoadedLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  void* handle() const { return handle_; }

 private:
  void* handle_;
};

// user: the file of a loaded library that was compiled for OpenMP. Whether its runtime was found; it is used from now on.
bool use_openmp_of(const std::string& user) {
  // In the order in which the library's own calls are bound.
  const LoadedLibrary program(nullptr), library(user.c_str());
  if (library.handle() == nullptr) return false;
  for (void* const handle : {program.handle(), library.handle()}) {
    const auto parallel = symbol<Parallel>(handle, "GOMP_parallel");
    const auto number = symbol<ThreadNumber>(handle, "omp_get_thread_num");
    if (parallel == nullptr || number == nullptr) continue;
    static const int registered = pthread_atfork(nullptr, nullptr, [] { runtime.parallel.store(nullptr); });
    if (registered != 0) return false;
    runtime.thread_number = number;
    runtime.parallel.store(parallel, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace

RunOnHostThreads openmp_threads() {
  return runtime.parallel.load(std::memory_order_acquire) != nullptr ? run_on_openmp : nullptr;
}

void add_openmp(nb::module_& module) {
  module.def("use_openmp_of", &use_openmp_of, nb::arg("library"));
}

}  // namespace fovea::python
