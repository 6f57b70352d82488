// Optional inputs and gradients of ops, as kernels take them: a pointer, or null.
#pragma once

#include "autograd/var.h"

namespace fovea {

// The first element, or element `at`; null for an undefined tensor.
inline float* data_or_null(const Tensor& t, int64_t at = 0) {
  return t.defined() ? t.data() + at : nullptr;
}
inline const float* data_or_null(const Var& v) {
  return v.defined() ? v.value().data() : nullptr;
}

// Uninitialised memory for the gradient of v; undefined where v requires none.
inline Tensor gradient_for(const Var& v) {
  return v.requires_grad() ? Tensor(v.shape()) : Tensor();
}

}  // namespace fovea
