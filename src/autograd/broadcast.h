// Broadcasting: sizes of 1, and leading dimensions that one side lacks, are repeated to fit the other
// side's.
#pragma once

#include <array>

#include "tensor/tensor.h"

namespace fovea {

// The shape in which a and b meet; throws, naming `op`, when two sizes differ and neither is 1.
Shape broadcast_shape(const Shape& a, const Shape& b, const char* op);

// Strides that walk t as if it had `shape`: 0 along repeated dimensions.
std::array<int64_t, Shape::kMaxRank> broadcast_strides(const Tensor& t, const Shape& shape);

// A contiguous copy of t with `shape`.
Tensor broadcast_to(const Tensor& t, const Shape& shape);

// The sum over all repetitions: the gradient of broadcast_to. `gradient` is contiguous; it is returned itself
// when nothing was repeated.
Tensor sum_to(const Tensor& gradient, const Shape& shape);

}  // namespace fovea
