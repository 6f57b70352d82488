#include "autograd/ops_softmax.h"

#include "autograd/broadcast.h"
#include "kernels/norm/softmax.h"

namespace fovea {
namespace {

// The mask as kernels read it; `seen` keeps a stretched mask alive.
struct PreparedMask {
  kernels::RowMask rows;
  Tensor seen;
};

PreparedMask prepare(const Shape& shape, const SoftmaxMask& mask, const char* op) {
  PreparedMask result;
  const int64_t columns = shape[-1], rows = shape.count(0, shape.rank() - 1);
  if (!mask.lengths.empty()) {
    const auto lengths = static_cast<int64_t>(mask.lengths.size());
    require(rows % lengths == 0, op, ": got ", lengths, " lengths for shape ", shape,
            ", wanted one per slice of the leading dimensions");
    for (const int32_t length : mask.lengths)
      require(length >= 0 && length <= columns, op, ": got length ", length, ", wanted 0 to ", columns);
    result.rows.lengths = mask.lengths.data();
    result.rows.rows_per_length = std::max<int64_t>(1, rows / lengths);
  }
  if (mask.causal) {
    require(shape.rank() >= 2, op, ": a causal mask for shape ", shape, ", wanted [..., rows, columns]");
    result.rows.causal_rows = shape[-2];
    result.rows.causal_offset = mask.causal_offset;
  }
  if (mask.seen.defined()) {
    require(broadcast_shape(mask.seen.shape(), shape, op) == shape, op, ": got a mask of shape ",
            mask.seen.shape(), " for shape ", shape, ", wanted one that broadcasts to it");
    // A mask that equals the last dimensions repeats as it is; any other is stretched.
    const int missing = shape.rank() - mask.seen.rank();
    bool suffix = mask.seen.rank() >= 1;
    for (int i = 0; suffix && i < mask.seen.rank(); ++i) suffix = mask.seen.size(i) == shape[missing + i];
    result.seen = suffix ? mask.seen.contiguous() : broadcast_to(mask.seen, shape);
    result.rows.seen = result.seen.data();
    result.rows.seen_rows = columns == 0 ? 1 : std::max<int64_t>(1, result.seen.count() / columns);
  }
  return result;
}

using Forward = void (*)(const kernels::Softmax&, const kernels::SoftmaxKernels&);
using Backward = void (*)(const kernels::SoftmaxBackward&, const kernels::SoftmaxKernels&);

Var run(const Var& x, const SoftmaxMask& mask, const char* op, Forward forward, Backward backward) {
  require(x.rank() >= 1, op, ": got a single number, wanted [..., n]");
  const int64_t columns = x.size(-1), rows = x.shape().count(0, x.rank() - 1);
  const PreparedMask prepared = prepare(x.shape(), mask, op);
  const Tensor from = x.value().contiguous();
  const Tensor y(x.shape());
  const kernels::SoftmaxKernels& level = kernels::softmax_kernels();
  forward({rows, columns, from.data(), y.data(), prepared.rows}, level);
  return record(y, {x}, [=, &level](const Tensor& grad) {
    const Tensor dx(x.shape());
    backward({rows, columns, y.data(), grad.data(), dx.data()}, level);
    x.add_grad(dx);
  });
}

}  // namespace

Var softmax(const Var& x, const SoftmaxMask& mask) {
  return run(x, mask, "softmax", kernels::softmax, kernels::softmax_backward);
}

Var log_softmax(const Var& x, const SoftmaxMask& mask) {
  return run(x, mask, "log_softmax", kernels::log_softmax, kernels::log_softmax_backward);
}

}  // namespace fovea
