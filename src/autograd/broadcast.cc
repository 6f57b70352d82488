#include "autograd/broadcast.h"

#include <algorithm>

#include "kernels/vector/reduce.h"
#include "kernels/vector/rows.h"

namespace fovea {

Shape broadcast_shape(const Shape& a, const Shape& b, const char* op) {
  const int rank = std::max(a.rank(), b.rank());
  Shape shape = a.rank() >= b.rank() ? a : b;
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    require(a[-i] == b[-i] || a[-i] == 1 || b[-i] == 1, op, ": got shapes ", a, " and ", b,
            ", wanted sizes that agree or are 1, from the last backwards");
    shape.set(rank - i, a[-i] == 1 ? b[-i] : a[-i]);
  }
  return shape;
}

std::array<int64_t, Shape::kMaxRank> broadcast_strides(const Tensor& t, const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  const int missing = shape.rank() - t.rank();
  for (int i = 0; i < t.rank(); ++i) strides[missing + i] = t.size(i) == 1 ? 0 : t.stride(i);
  return strides;
}

Tensor broadcast_to(const Tensor& t, const Shape& shape) {
  const Tensor copy(shape);
  const auto from = broadcast_strides(t, shape), to = broadcast_strides(copy, shape);
  kernels::copy_strided({{shape.begin(), shape.end()}, t.data(), from.data(), copy.data(), to.data()});
  return copy;
}

Tensor sum_to(const Tensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const Shape& whole = gradient.shape();
  const int missing = whole.rank() - shape.rank();
  bool summed[Shape::kMaxRank];
  for (int i = 0; i < whole.rank(); ++i)
    summed[i] = i < missing || (shape[i - missing] == 1 && whole[i] != 1);
  Tensor sum(shape);
  kernels::sum_dimensions(gradient.data(), {whole.begin(), whole.end()}, summed, sum.data());
  return sum;
}

}  // namespace fovea
