// Model folders opened from Python: answers, explanations, scores.
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

void add_tasks(nanobind::module_& module);

}  // namespace fovea::python
