// Trainings started from Python.
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

void add_train(nanobind::module_& module);

}  // namespace fovea::python
