// Ops that move elements without changing them.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "autograd/var.h"

namespace fovea {

// One size may be -1: whatever is left.
Var reshape(const Var& x, std::initializer_list<int64_t> sizes);
Var reshape(const Var& x, const Shape& shape);
// Views; kernels that need contiguous memory make their own copy.
Var transpose(const Var& x, int a, int b);
Var permute(const Var& x, std::initializer_list<int> axes);
// Elements [begin, begin + count) along an axis: a view.
Var slice(const Var& x, int axis, int64_t begin, int64_t count);
// Views of consecutive parts along an axis; the counts must add up to its size.
std::vector<Var> split(const Var& x, int axis, std::span<const int64_t> counts);
// Joins along an axis; all other sizes agree.
Var concat(std::span<const Var> parts, int axis);

}  // namespace fovea
