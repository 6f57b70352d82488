#include "autograd/ops_math.h"

#include "autograd/broadcast.h"
#include "kernels/vector/elementwise.h"

namespace fovea {
namespace {

using kernels::Binary;
using kernels::Unary;

Tensor combine(Binary op, const Tensor& a, const Tensor& b, const char* name) {
  Tensor y(broadcast_shape(a.shape(), b.shape(), name));
  const auto a_strides = broadcast_strides(a, y.shape()), b_strides = broadcast_strides(b, y.shape());
  kernels::binary(op, {y.shape().begin(), y.shape().end()}, {a.data(), a_strides.data()},
                  {b.data(), b_strides.data()}, y.data());
  return y;
}

Tensor scaled(const Tensor& x, float factor) {
  Tensor y(x.shape());
  kernels::scale(factor, x.contiguous().data(), y.data(), y.count());
  return y;
}

Var unary(Unary op, const Var& x) {
  const Tensor from = x.value().contiguous();
  Tensor y(x.shape());
  kernels::unary(op, from.data(), y.data(), y.count());
  const Tensor saved = kernels::unary_saves_input(op) ? from : y;
  return record(std::move(y), {x}, [=](const Tensor& grad) {
    Tensor dx(x.shape());
    kernels::unary_backward(op, saved.data(), grad.data(), dx.data(), dx.count());
    x.add_grad(dx);
  });
}

}  // namespace

Var operator+(const Var& a, const Var& b) {
  return record(combine(Binary::add, a.value(), b.value(), "+"), {a, b}, [=](const Tensor& grad) {
    if (a.requires_grad()) a.add_grad(sum_to(grad, a.shape()));
    if (b.requires_grad()) b.add_grad(sum_to(grad, b.shape()));
  });
}

Var operator-(const Var& a, const Var& b) {
  return record(combine(Binary::sub, a.value(), b.value(), "-"), {a, b}, [=](const Tensor& grad) {
    if (a.requires_grad()) a.add_grad(sum_to(grad, a.shape()));
    if (b.requires_grad()) b.add_grad(scaled(sum_to(grad, b.shape()), -1));
  });
}

Var operator*(const Var& a, const Var& b) {
  return record(combine(Binary::mul, a.value(), b.value(), "*"), {a, b}, [=](const Tensor& grad) {
    if (a.requires_grad()) a.add_grad(sum_to(combine(Binary::mul, grad, b.value(), "*"), a.shape()));
    if (b.requires_grad()) b.add_grad(sum_to(combine(Binary::mul, grad, a.value(), "*"), b.shape()));
  });
}

Var operator/(const Var& a, const Var& b) {
  const Tensor y = combine(Binary::div, a.value(), b.value(), "/");
  return record(y, {a, b}, [=](const Tensor& grad) {
    const Tensor by_b = combine(Binary::div, grad, b.value(), "/");
    if (a.requires_grad()) a.add_grad(sum_to(by_b, a.shape()));
    if (b.requires_grad()) b.add_grad(scaled(sum_to(combine(Binary::mul, by_b, y, "*"), b.shape()), -1));
  });
}

Var operator+(const Var& x, float number) {
  return record(combine(Binary::add, x.value(), Tensor::scalar(number), "+"), {x},
                [x](const Tensor& grad) { x.add_grad(grad); });
}

Var operator-(const Var& x, float number) {
  return x + -number;
}

Var operator*(const Var& x, float number) {
  return record(scaled(x.value(), number), {x},
                [x, number](const Tensor& grad) { x.add_grad(scaled(grad, number)); });
}

Var operator/(const Var& x, float number) {
  return x / Var(Tensor::scalar(number));
}
Var operator-(float number, const Var& x) {
  return Var(Tensor::scalar(number)) - x;
}
Var operator/(float number, const Var& x) {
  return Var(Tensor::scalar(number)) / x;
}

Var relu(const Var& x) {
  return unary(Unary::relu, x);
}
Var gelu(const Var& x) {
  return unary(Unary::gelu, x);
}
Var gelu_tanh(const Var& x) {
  return unary(Unary::gelu_tanh, x);
}
Var silu(const Var& x) {
  return unary(Unary::silu, x);
}
Var tanh(const Var& x) {
  return unary(Unary::tanh, x);
}
Var sigmoid(const Var& x) {
  return unary(Unary::sigmoid, x);
}
Var exp(const Var& x) {
  return unary(Unary::exp, x);
}
Var log(const Var& x) {
  return unary(Unary::log, x);
}

}  // namespace fovea
