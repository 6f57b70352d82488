// Matrix products and the linear layer with its activation, each with its gradient.
#include "autograd/ops_linear.h"

#include <algorithm>

#include "autograd/in_place.h"
#include "kernels/gemm/gemm.h"

namespace fovea {
namespace {

// A [batch..., rows, columns] operand as gemm reads it: in place where one of the last two strides is 1.
struct Matrix {
  Tensor tensor;
  bool transposed = false;  // stored with the last two dimensions swapped
  int64_t ld = 0;
  int64_t rows = 0, columns = 0;
  int64_t batch = 1, batch_stride = 0;
};

// True when the leading dimensions advance evenly, as one batch.
bool even_batches(const Tensor& t) {
  for (int i = 0; i + 3 < t.rank(); ++i)
    if (t.size(i) != 1 && t.stride(i) != t.stride(i + 1) * t.size(i + 1)) return false;
  return true;
}

Matrix as_matrix(const Tensor& t) {
  Matrix m{.tensor = t, .rows = t.size(-2), .columns = t.size(-1)};
  const bool row_major = t.stride(-1) == 1 && t.stride(-2) >= std::max<int64_t>(1, m.columns);
  const bool column_major = t.stride(-2) == 1 && t.stride(-1) >= std::max<int64_t>(1, m.rows);
  if (!even_batches(t) || !(row_major || column_major)) {
    m.tensor = t.clone();
    m.ld = m.columns;
  } else {
    m.transposed = !row_major;
    m.ld = row_major ? t.stride(-2) : t.stride(-1);
  }
  if (t.rank() > 2) {
    m.batch = t.shape().count(0, t.rank() - 2);
    m.batch_stride = m.tensor.stride(-3);
  }
  return m;
}

// alpha * op(a) * op(b), batched; `flatten` sums over the batch into one matrix (the gradient of a shared
// operand).
struct Product {
  const Tensor& a;
  bool transpose_a;
  const Tensor& b;
  bool transpose_b;
  float alpha;
};

Tensor multiply(const Product& p, const Shape& shape, const float* bias = nullptr) {
  const Matrix a = as_matrix(p.a), b = as_matrix(p.b);
  Tensor c(shape);
  const int64_t m = p.transpose_a ? a.columns : a.rows, k = p.transpose_a ? a.rows : a.columns;
  const int64_t n = p.transpose_b ? b.rows : b.columns;
  kernels::Gemm g{.transpose_a = p.transpose_a != a.transposed,
                  .transpose_b = p.transpose_b != b.transposed,
                  .m = m,
                  .n = n,
                  .k = k,
                  .alpha = p.alpha,
                  .a = a.tensor.data(),
                  .lda = a.ld,
                  .b = b.tensor.data(),
                  .ldb = b.ld,
                  .bias = bias,
                  .c = c.data(),
                  .ldc = n};
  // Rows of a batch that share b are one tall matrix.
  if (b.batch == 1 && !g.transpose_a && a.batch > 1 && a.batch_stride == m * a.ld) {
    g.m = m * a.batch;
    kernels::gemm(g);
  } else {
    kernels::gemm_batched(g, std::max(a.batch, b.batch), a.batch > 1 ? a.batch_stride : 0,
                          b.batch > 1 ? b.batch_stride : 0, m * n);
  }
  return c;
}

// The gradient of a matrix that a whole batch shared: the products summed over the batch, in batch order.
Tensor multiply_and_sum(const Product& p, const Shape& shape) {
  const Matrix a = as_matrix(p.a), b = as_matrix(p.b);
  Tensor c = Tensor::zeros(shape);
  kernels::Gemm g{.transpose_a = p.transpose_a != a.transposed,
                  .transpose_b = p.transpose_b != b.transposed,
                  .m = shape[-2],
                  .n = shape[-1],
                  .k = p.transpose_a ? a.rows : a.columns,
                  .alpha = p.alpha,
                  .a = a.tensor.data(),
                  .lda = a.ld,
                  .b = b.tensor.data(),
                  .ldb = b.ld,
                  .c = c.data(),
                  .ldc = shape[-1]};
  const int64_t batch = std::max(a.batch, b.batch);
  // Both contiguous along the summed dimension: the batch is only a longer k.
  if (g.transpose_a && !g.transpose_b && a.batch_stride == g.k * a.ld && b.batch_stride == g.k * b.ld) {
    g.k *= batch;
    kernels::gemm(g);
    return c;
  }
  g.beta = 1;
  for (int64_t i = 0; i < batch; ++i) {
    kernels::gemm(g);
    g.a += a.batch_stride;
    g.b += b.batch_stride;
  }
  return c;
}

Tensor gradient(const Product& p, const Shape& shape) {
  const bool summed = shape.rank() == 2 && std::max(p.a.rank(), p.b.rank()) > 2;
  return summed ? multiply_and_sum(p, shape) : multiply(p, shape);
}

}  // namespace

Var matmul(const Var& a, const Var& b, const MatmulOptions& options) {
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const float scale = options.scale;
  require(a.rank() >= 2 && b.rank() >= 2, "matmul: got shapes ", a.shape(), " and ", b.shape(),
          ", wanted at least two dimensions each");
  const int64_t k = a.size(ta ? -2 : -1), k_b = b.size(tb ? -1 : -2);
  require(k == k_b, "matmul: the inner sizes of ", a.shape(), ta ? " (transposed)" : "", " and ", b.shape(),
          tb ? " (transposed)" : "", " differ: ", k, " and ", k_b);
  const Var& leading = a.rank() > 2 ? a : b;
  if (a.rank() > 2 && b.rank() > 2) {
    bool same = a.rank() == b.rank();
    for (int i = 0; same && i + 2 < a.rank(); ++i) same = a.size(i) == b.size(i);
    require(same, "matmul: the leading sizes of ", a.shape(), " and ", b.shape(), " differ");
  }
  Shape shape = leading.shape();
  shape.set(-2, a.size(ta ? -1 : -2));
  shape.set(-1, b.size(tb ? -2 : -1));
  return record(multiply({a.value(), ta, b.value(), tb, scale}, shape), {a, b}, [=](const Tensor& grad) {
    if (a.requires_grad()) {
      a.add_grad(ta ? gradient({b.value(), tb, grad, true, scale}, a.shape())
                    : gradient({grad, false, b.value(), !tb, scale}, a.shape()));
    }
    if (b.requires_grad()) {
      b.add_grad(tb ? gradient({grad, true, a.value(), ta, scale}, b.shape())
                    : gradient({a.value(), !ta, grad, false, scale}, b.shape()));
    }
  });
}

Var linear(const Var& x, const Var& weight, const Var& bias, Activation activation) {
  return linear_dropout(x, weight, bias, activation, 0, 0);
}

Var linear_dropout(const Var& x, const Var& weight, const Var& bias, Activation activation, float p,
                   uint64_t seed) {
  require(weight.rank() == 2, "linear: got a weight of shape ", weight.shape(), ", wanted [out, in]");
  const int64_t in = weight.size(1), out = weight.size(0);
  require(x.rank() >= 1 && x.size(-1) == in, "linear: got input of shape ", x.shape(),
          " for a weight of shape ", weight.shape(), ", wanted [..., ", in, "]");
  require(!bias.defined() || bias.shape() == Shape{out}, "linear: got a bias of shape ",
          bias.defined() ? bias.shape() : Shape{}, ", wanted [", out, "]");
  Shape shape = x.shape();
  shape.set(-1, out);
  const int64_t rows = shape.count(0, shape.rank() - 1);
  const Tensor flat = x.value().reshape({rows, in});
  Tensor y = multiply({flat, false, weight.value(), true, 1}, {rows, out},
                      bias.defined() ? bias.value().data() : nullptr);
  const bool keep_before = activation != Activation::none && activation != Activation::relu;
  const Tensor before = keep_before && recording({x, weight, bias}) ? Tensor(y.shape()) : Tensor();
  if (activation != Activation::none) {
    kernels::bias_activation({.activation = activation,
                              .rows = rows,
                              .columns = out,
                              .x = y.data(),
                              .before = before.defined() ? before.data() : nullptr,
                              .y = y.data()});
  }
  const kernels::Dropout draws{.probability = p, .seed = seed};
  if (draws.active()) kernels::dropout(draws, y.data(), y.data(), y.count());
  // Of relu the result says where it was positive; dropped elements get no gradient either way.
  const Tensor saved = keep_before ? before : activation == Activation::relu ? y : Tensor();
  return record(y.reshape(shape), {x, weight, bias}, [=](const Tensor& grad) {
    Tensor d = grad.reshape({rows, out});
    if (draws.active()) {
      const Tensor kept(d.shape());
      kernels::dropout(draws, d.data(), kept.data(), d.count());
      d = kept;
    }
    const Tensor d_bias = bias.requires_grad() ? Tensor(Shape{out}) : Tensor();
    if (activation != Activation::none || d_bias.defined()) {
      const Tensor dx = activation == Activation::none ? Tensor() : draws.active() ? d : Tensor(d.shape());
      kernels::bias_activation_backward({.activation = activation,
                                         .rows = rows,
                                         .columns = out,
                                         .saved = saved.defined() ? saved.data() : nullptr,
                                         .dy = d.data(),
                                         .dx = dx.defined() ? dx.data() : nullptr,
                                         .d_bias = d_bias.defined() ? d_bias.data() : nullptr});
      if (dx.defined()) d = dx;
    }
    if (x.requires_grad())
      x.add_grad(multiply({d, false, weight.value(), false, 1}, {rows, in}).reshape(x.shape()));
    if (weight.requires_grad()) weight.add_grad(multiply({d, true, flat, false, 1}, {out, in}));
    if (d_bias.defined()) bias.add_grad(d_bias);
  });
}

}  // namespace fovea
