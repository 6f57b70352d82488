// The module fovea._core: what the Python files in python/fovea are written with.
#include <nanobind/nanobind.h>

#include "base/cpu.h"
#include "base/parallel.h"
#include "python/attention.h"
#include "python/errors.h"
#include "python/masks.h"
#include "python/openmp.h"
#include "python/tasks.h"
#include "python/torch_call.h"
#include "python/train.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // masks that Python still keeps at its end are no leak; tests count memory
  module.attr("__version__") = FOVEA_VERSION;
  fovea::python::translate_errors();
  fovea::python::add_attention(module);
  fovea::python::add_masks(module);
  fovea::python::add_torch_calls(module);
  fovea::python::add_openmp(module);
  fovea::python::add_tasks(module);
  fovea::python::add_train(module);
  module.def("set_num_threads", &fovea::set_num_threads, nb::arg("count"),
             "Threads that Fovea uses from now on; 0: one per core. Results do not depend on it.");
  module.def("num_threads", &fovea::num_threads, "Threads that Fovea uses.");
}
