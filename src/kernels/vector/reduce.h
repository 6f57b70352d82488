// Sums and maxima along an axis, added in an order that depends on the shape alone.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace fovea::kernels {

struct ReduceKernels;
const ReduceKernels& reduce_kernels(Level level = current_level());

// A tensor seen as [outer, axis, inner].
struct AxisShape {
  int64_t outer = 1, axis = 1, inner = 1;
};

double sum(const float* x, int64_t count, const ReduceKernels& kernels = reduce_kernels());

// y: [outer, inner]; an empty axis sums to 0.
void sum_axis(const float* x, const AxisShape& shape, float* y,
              const ReduceKernels& kernels = reduce_kernels());

// y, index: [outer, inner]; the first of equal maxima; a NaN counts as largest. The axis is not empty.
void max_axis(const float* x, const AxisShape& shape, float* y, int32_t* index,
              const ReduceKernels& kernels = reduce_kernels());

// Sums x, contiguous over `sizes`, along every dimension i with summed[i]: the gradient of a broadcast.
// y holds the remaining dimensions, contiguous.
void sum_dimensions(const float* x, std::span<const int64_t> sizes, const bool* summed, float* y,
                    const ReduceKernels& kernels = reduce_kernels());

// Bodies on the calling thread.
struct ReduceKernels {
  double (*sum)(const float* x, int64_t count);
  // y[j] = sum of x[i * stride + j] over i in [0, rows), for j in [0, columns).
  void (*sum_rows)(const float* x, int64_t rows, int64_t columns, int64_t stride, float* y);
  // Place of the first maximum of count >= 1 numbers.
  int64_t (*argmax)(const float* x, int64_t count);
};

}  // namespace fovea::kernels
