// Tensors of PyTorch as pointer, sizes and strides, without libtorch.
#pragma once

#include <nanobind/nanobind.h>

#include "attention/strided.h"

namespace fovea::python {

// None: absent. The caller vouches for float32 on the CPU, and keeps the tensor.
StridedOutput tensor_view(nanobind::handle tensor);
inline StridedInput input_view(nanobind::handle tensor) {
  const StridedOutput found = tensor_view(tensor);
  return {found.data, found.rank, found.sizes, found.strides, found.present};
}

}  // namespace fovea::python
