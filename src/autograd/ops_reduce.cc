#include "autograd/ops_reduce.h"

#include "autograd/broadcast.h"
#include "kernels/vector/elementwise.h"
#include "kernels/vector/reduce.h"

namespace fovea {
namespace {

struct Axis {
  kernels::AxisShape sizes;
  Shape kept;     // the axis has size 1
  Shape dropped;  // the axis is gone
};

Axis axis_of(const Shape& shape, int axis) {
  axis = shape.axis(axis);
  Axis result{{shape.count(0, axis), shape[axis], shape.count(axis + 1, shape.rank())}, shape, {}};
  result.kept.set(axis, 1);
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis) result.dropped.push_back(shape[i]);
  return result;
}

void scale_in_place(const Tensor& x, float factor) {
  kernels::scale(factor, x.data(), x.data(), x.count());
}

// factor * sum along an axis.
Var scaled_sum(const Var& x, int axis, bool keep_axis, float factor) {
  const Axis a = axis_of(x.shape(), axis);
  const Tensor y(keep_axis ? a.kept : a.dropped);
  kernels::sum_axis(x.value().contiguous().data(), a.sizes, y.data());
  if (factor != 1) scale_in_place(y, factor);
  return record(y, {x}, [x, kept = a.kept, factor](const Tensor& grad) {
    const Tensor dx = broadcast_to(grad.reshape(kept), x.shape());
    if (factor != 1) scale_in_place(dx, factor);
    x.add_grad(dx);
  });
}

Var scaled_sum(const Var& x, double factor) {
  const double total = kernels::sum(x.value().contiguous().data(), x.count());
  return record(Tensor::scalar(static_cast<float>(factor * total)), {x}, [x, factor](const Tensor& grad) {
    x.add_grad(Tensor::full(x.shape(), static_cast<float>(factor * grad.item())));
  });
}

}  // namespace

Var sum(const Var& x) {
  return scaled_sum(x, 1.0);
}

Var mean(const Var& x) {
  require(x.count() > 0, "mean: got shape ", x.shape(), ", wanted at least one element");
  return scaled_sum(x, 1.0 / static_cast<double>(x.count()));
}

Var sum(const Var& x, int axis, bool keep_axis) {
  return scaled_sum(x, axis, keep_axis, 1);
}

Var mean(const Var& x, int axis, bool keep_axis) {
  require(x.size(axis) > 0, "mean: got shape ", x.shape(), ", wanted at least one element along dimension ",
          axis);
  return scaled_sum(x, axis, keep_axis, 1 / static_cast<float>(x.size(axis)));
}

Var max(const Var& x, int axis, bool keep_axis) {
  require(x.size(axis) > 0, "max: got shape ", x.shape(), ", wanted at least one element along dimension ",
          axis);
  const Axis a = axis_of(x.shape(), axis);
  const Tensor y(keep_axis ? a.kept : a.dropped);
  const auto index = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(y.count()));
  kernels::max_axis(x.value().contiguous().data(), a.sizes, y.data(), index->data());
  return record(y, {x}, [x, index, sizes = a.sizes](const Tensor& grad) {
    const Tensor dx = Tensor::zeros(x.shape());
    for (int64_t o = 0; o < sizes.outer; ++o)
      for (int64_t j = 0; j < sizes.inner; ++j) {
        const int64_t i = o * sizes.inner + j;
        dx.data()[(o * sizes.axis + (*index)[static_cast<size_t>(i)]) * sizes.inner + j] = grad.data()[i];
      }
    x.add_grad(dx);
  });
}

}  // namespace fovea
