// The functions of vector_math-inl.h over arrays, so that their accuracy can be tested on every level.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

// Each computes y[i] = f(x[i]) for i in [0, count); x and y may be the same array.
struct VectorMathKernels {
  void (*exp)(const float* x, float* y, int64_t count);
  void (*exp_nonpositive)(const float* x, float* y, int64_t count);
  void (*log)(const float* x, float* y, int64_t count);
  void (*tanh)(const float* x, float* y, int64_t count);
  void (*sigmoid)(const float* x, float* y, int64_t count);
  void (*erf)(const float* x, float* y, int64_t count);
};

const VectorMathKernels& vector_math_kernels(Level level = current_level());

}  // namespace fovea::kernels
