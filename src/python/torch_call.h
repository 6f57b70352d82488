// The calls under fovea.torch, on tensors that PyTorch made.
#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

void add_torch_calls(nanobind::module_& module);

}  // namespace fovea::python
