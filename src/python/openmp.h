// The threads of the OpenMP runtime that PyTorch has loaded, for attention inside PyTorch. The workers of a runtime keep spinning
// for some milliseconds after a parallel region; beside them, threads of Fovea's own would get half a core each.
#pragma once

#include <nanobind/nanobind.h>

#include "base/host_threads.h"

namespace fovea::python {

// Null: Fovea's own threads; so in a forked child, where runtimes of OpenMP wait for threads that are no more.
RunOnHostThreads openmp_threads();

void add_openmp(nanobind::module_& module);

}  // namespace fovea::python
