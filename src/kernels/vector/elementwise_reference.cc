// Unary functions, operators, dropout and bias with activation by definition, for comparison with the fast kernels.
#include <algorithm>
#include <cmath>

#include "kernels/vector/elementwise.h"

namespace fovea::kernels::scalar {
namespace {

constexpr double kSqrt2OverPi = 0.7978845608028654, kInvSqrt2Pi = 0.3989422804014327, kCubic = 0.044715;

double gelu_cdf(double x) {
  return 0.5 * (1 + std::erf(x * 0.7071067811865476));
}
double gelu_tanh_inner(double x) {
  return std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x));
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

template <Unary op>
float value(float x) {
  if constexpr (op == Unary::relu) return std::max(x, 0.0f);
  if constexpr (op == Unary::gelu) return static_cast<float>(x * gelu_cdf(x));
  if constexpr (op == Unary::gelu_tanh) return static_cast<float>(0.5 * x * (1 + gelu_tanh_inner(x)));
  if constexpr (op == Unary::silu) return static_cast<float>(x * sigmoid(x));
  if constexpr (op == Unary::tanh) return std::tanh(x);
  if constexpr (op == Unary::sigmoid) return static_cast<float>(sigmoid(x));
  if constexpr (op == Unary::exp) return std::exp(x);
  if constexpr (op == Unary::log) return std::log(x);
}

// The derivative, from what unary_saves_input says is kept.
template <Unary op>
float slope(float saved) {
  const double s = saved;
  if constexpr (op == Unary::relu) return saved > 0 ? 1.0f : 0.0f;
  if constexpr (op == Unary::gelu)
    return static_cast<float>(gelu_cdf(s) + s * std::exp(-0.5 * s * s) * kInvSqrt2Pi);
  if constexpr (op == Unary::gelu_tanh) {
    const double t = gelu_tanh_inner(s);
    return static_cast<float>(0.5 * (1 + t) +
                              0.5 * s * (1 - t * t) * kSqrt2OverPi * (1 + 3 * kCubic * s * s));
  }
  if constexpr (op == Unary::silu) return static_cast<float>(sigmoid(s) * (1 + s * (1 - sigmoid(s))));
  if constexpr (op == Unary::tanh) return 1 - saved * saved;
  if constexpr (op == Unary::sigmoid) return saved * (1 - saved);
  if constexpr (op == Unary::exp) return saved;
  if constexpr (op == Unary::log) return 1 / saved;
}

template <Unary op>
void unary(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = value<op>(x[i]);
}

template <Unary op>
void unary_backward(const float* saved, const float* dy, float* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * slope<op>(saved[i]);
}

template <Binary op>
float combine(float a, float b) {
  if constexpr (op == Binary::add) return a + b;
  if constexpr (op == Binary::sub) return a - b;
  if constexpr (op == Binary::mul) return a * b;
  if constexpr (op == Binary::div) return a / b;
}

template <Binary op, int step_a, int step_b>
void binary(const float* a, const float* b, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = combine<op>(a[i * step_a], b[i * step_b]);
}

void scale(float alpha, const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = alpha * x[i];
}

void axpy(float alpha, const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += alpha * x[i];
}

void dropout(const Dropout& dropout, int64_t first, const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * dropout.factor(first + i);
}

float activate(Epilogue activation, float x) {
  switch (activation) {
    case Epilogue::none:
      return x;
    case Epilogue::relu:
      return value<Unary::relu>(x);
    case Epilogue::gelu:
      return value<Unary::gelu>(x);
    case Epilogue::gelu_tanh:
      return value<Unary::gelu_tanh>(x);
    case Epilogue::silu:
      return value<Unary::silu>(x);
  }
  return x;
}

float activation_slope(Epilogue activation, float saved) {
  switch (activation) {
    case Epilogue::none:
      return 1;
    case Epilogue::relu:
      return slope<Unary::relu>(saved);
    case Epilogue::gelu:
      return slope<Unary::gelu>(saved);
    case Epilogue::gelu_tanh:
      return slope<Unary::gelu_tanh>(saved);
    case Epilogue::silu:
      return slope<Unary::silu>(saved);
  }
  return 1;
}

void bias_activation(const BiasActivation& args, int64_t begin_row, int64_t end_row) {
  for (int64_t row = begin_row; row < end_row; ++row)
    for (int64_t j = 0; j < args.columns; ++j) {
      const int64_t i = row * args.columns + j;
      const float before = args.x[i] + (args.bias ? args.bias[j] : 0.0f);
      if (args.before) args.before[i] = before;
      args.y[i] = activate(args.activation, before);
    }
}

void bias_activation_backward(const BiasActivationBackward& args, int64_t begin_row, int64_t end_row,
                              float* bias_sums) {
  for (int64_t row = begin_row; row < end_row; ++row)
    for (int64_t j = 0; j < args.columns; ++j) {
      const int64_t i = row * args.columns + j;
      float dx = args.dy[i];
      if (args.activation != Epilogue::none) dx *= activation_slope(args.activation, args.saved[i]);
      if (args.dx) args.dx[i] = dx;
      if (bias_sums) bias_sums[j] += dx;
    }
}

}  // namespace

extern const ElementwiseKernels elementwise_table;
const ElementwiseKernels elementwise_table{
    .unary = {unary<Unary::relu>, unary<Unary::gelu>, unary<Unary::gelu_tanh>, unary<Unary::silu>,
              unary<Unary::tanh>, unary<Unary::sigmoid>, unary<Unary::exp>, unary<Unary::log>},
    .unary_backward = {unary_backward<Unary::relu>, unary_backward<Unary::gelu>,
                       unary_backward<Unary::gelu_tanh>, unary_backward<Unary::silu>,
                       unary_backward<Unary::tanh>, unary_backward<Unary::sigmoid>,
                       unary_backward<Unary::exp>, unary_backward<Unary::log>},
    .binary = {{binary<Binary::add, 1, 1>, binary<Binary::add, 1, 0>, binary<Binary::add, 0, 1>},
               {binary<Binary::sub, 1, 1>, binary<Binary::sub, 1, 0>, binary<Binary::sub, 0, 1>},
               {binary<Binary::mul, 1, 1>, binary<Binary::mul, 1, 0>, binary<Binary::mul, 0, 1>},
               {binary<Binary::div, 1, 1>, binary<Binary::div, 1, 0>, binary<Binary::div, 0, 1>}},
    .scale = scale,
    .axpy = axpy,
    .dropout = dropout,
    .bias_activation = bias_activation,
    .bias_activation_backward = bias_activation_backward,
};

}  // namespace fovea::kernels::scalar
