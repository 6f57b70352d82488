// Unary functions, operators, dropout and bias with activation on runs of elements, in SIMD.
#include "kernels/vector/elementwise.h"

#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_philox-inl.h"
#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_LANES(float));

constexpr float kSqrt2OverPi = 0.7978845608028654f, kInvSqrt2Pi = 0.3989422804014327f, kCubic = 0.044715f;

HWY_INLINE V gelu_cdf(V x) {
  const V half = hn::Set(d, 0.5f);
  return hn::MulAdd(half, vmath::erf(d, hn::Mul(x, hn::Set(d, 0.7071067811865476f))), half);
}
HWY_INLINE V gelu_tanh_inner(V x) {
  const V cubic = hn::MulAdd(hn::Mul(hn::Set(d, kCubic * kSqrt2OverPi), x), x, hn::Set(d, kSqrt2OverPi));
  return vmath::tanh(d, hn::Mul(x, cubic));
}

template <Unary op>
HWY_INLINE V value(V x) {
  if constexpr (op == Unary::relu) return hn::Max(x, hn::Zero(d));
  if constexpr (op == Unary::gelu) return hn::Mul(x, gelu_cdf(x));
  if constexpr (op == Unary::gelu_tanh) {
    const V half = hn::Mul(hn::Set(d, 0.5f), x);
    return hn::MulAdd(half, gelu_tanh_inner(x), half);
  }
  if constexpr (op == Unary::silu) return hn::Mul(x, vmath::sigmoid(d, x));
  if constexpr (op == Unary::tanh) return vmath::tanh(d, x);
  if constexpr (op == Unary::sigmoid) return vmath::sigmoid(d, x);
  if constexpr (op == Unary::exp) return vmath::exp(d, x);
  if constexpr (op == Unary::log) return vmath::log(d, x);
}

// dy times the derivative, from what unary_saves_input says is kept.
template <Unary op>
HWY_INLINE V through(V s, V dy) {
  const V one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f);
  if constexpr (op == Unary::relu) return hn::IfThenElseZero(hn::Gt(s, hn::Zero(d)), dy);
  if constexpr (op == Unary::gelu) {
    const V density = vmath::exp_nonpositive(d, hn::Mul(hn::Mul(hn::Set(d, -0.5f), s), s));
    return hn::Mul(dy, hn::MulAdd(hn::Mul(s, hn::Set(d, kInvSqrt2Pi)), density, gelu_cdf(s)));
  }
  if constexpr (op == Unary::gelu_tanh) {
    const V t = gelu_tanh_inner(s);
    const V inner =
        hn::MulAdd(hn::Mul(hn::Set(d, 3 * kCubic * kSqrt2OverPi), s), s, hn::Set(d, kSqrt2OverPi));
    const V tail = hn::Mul(hn::Mul(hn::Mul(half, s), hn::NegMulAdd(t, t, one)), inner);
    return hn::Mul(dy, hn::Add(hn::MulAdd(half, t, half), tail));
  }
  if constexpr (op == Unary::silu) {
    const V open = vmath::sigmoid(d, s);
    return hn::Mul(dy, hn::Mul(open, hn::MulAdd(s, hn::Sub(one, open), one)));
  }
  if constexpr (op == Unary::tanh) return hn::Mul(dy, hn::NegMulAdd(s, s, one));
  if constexpr (op == Unary::sigmoid) return hn::Mul(dy, hn::NegMulAdd(s, s, s));
  if constexpr (op == Unary::exp) return hn::Mul(dy, s);
  if constexpr (op == Unary::log) return hn::Div(dy, s);
}

// y[i] = f(inputs[i]...) over contiguous arrays.
template <class F, class... Inputs>
HWY_INLINE void map(int64_t count, float* y, F f, Inputs... inputs) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(f(hn::LoadU(d, inputs + i)...), d, y + i);
  if (const int64_t rest = count - i; rest > 0)
    store_first(f(load_first(d, inputs + i, rest)...), d, y + i, rest);
}

template <Unary op>
void unary(const float* x, float* y, int64_t count) {
  map(
      count, y, [](V v) HWY_ATTR { return value<op>(v); }, x);
}

template <Unary op>
void unary_backward(const float* saved, const float* dy, float* dx, int64_t count) {
  map(
      count, dx, [](V s, V g) HWY_ATTR { return through<op>(s, g); }, saved, dy);
}

template <Binary op>
HWY_INLINE V combine(V a, V b) {
  if constexpr (op == Binary::add) return hn::Add(a, b);
  if constexpr (op == Binary::sub) return hn::Sub(a, b);
  if constexpr (op == Binary::mul) return hn::Mul(a, b);
  if constexpr (op == Binary::div) return hn::Div(a, b);
}

template <Binary op>
void both_advance(const float* a, const float* b, float* y, int64_t count) {
  map(
      count, y, [](V u, V v) HWY_ATTR { return combine<op>(u, v); }, a, b);
}
template <Binary op>
void one_b(const float* a, const float* b, float* y, int64_t count) {
  const V v = hn::Set(d, *b);
  map(
      count, y, [v](V u) HWY_ATTR { return combine<op>(u, v); }, a);
}
template <Binary op>
void one_a(const float* a, const float* b, float* y, int64_t count) {
  const V u = hn::Set(d, *a);
  map(
      count, y, [u](V v) HWY_ATTR { return combine<op>(u, v); }, b);
}

void scale(float alpha, const float* x, float* y, int64_t count) {
  const V factor = hn::Set(d, alpha);
  map(
      count, y, [factor](V v) HWY_ATTR { return hn::Mul(factor, v); }, x);
}

void axpy(float alpha, const float* x, float* y, int64_t count) {
  const V factor = hn::Set(d, alpha);
  map(
      count, y, [factor](V v, V sum) HWY_ATTR { return hn::MulAdd(factor, v, sum); }, x,
      static_cast<const float*>(y));
}

void dropout(const Dropout& dropout, int64_t first, const float* x, float* y, int64_t count) {
  const DropoutFactors factors(dropout.seed, dropout.threshold(), dropout.scale());
  HWY_ALIGN float room[DropoutFactors::kRoom];
  for (int64_t done = 0; done < count; done += DropoutFactors::kBlock) {
    const int64_t block = HWY_MIN(DropoutFactors::kBlock, count - done);
    const float* factor = factors.fill(first + done, block, room);
    map(
        block, y + done, [](V v, V f) HWY_ATTR { return hn::Mul(v, f); }, x + done, factor);
  }
}

// Calls f with the activation as a constant, so that the choice is made outside the loops.
template <class F>
HWY_INLINE void with_unary(Epilogue activation, F f) {
  switch (activation) {
    case Epilogue::none:
      break;
    case Epilogue::relu:
      f.template operator()<Unary::relu>();
      break;
    case Epilogue::gelu:
      f.template operator()<Unary::gelu>();
      break;
    case Epilogue::gelu_tanh:
      f.template operator()<Unary::gelu_tanh>();
      break;
    case Epilogue::silu:
      f.template operator()<Unary::silu>();
      break;
  }
}

void bias_activation(const BiasActivation& args, int64_t begin_row, int64_t end_row) {
  const int64_t n = args.columns;
  for (int64_t row = begin_row; row < end_row; ++row) {
    const float* x = args.x + row * n;
    float* y = args.y + row * n;
    float* before = args.before ? args.before + row * n : nullptr;
    if (before || args.activation == Epilogue::none) {
      float* sum = before ? before : y;
      if (args.bias)
        map(
            n, sum, [](V v, V b) HWY_ATTR { return hn::Add(v, b); }, x, args.bias);
      else if (sum != x)
        map(
            n, sum, [](V v) HWY_ATTR { return v; }, x);
      with_unary(args.activation, [&]<Unary op>() HWY_ATTR { unary<op>(before, y, n); });
      if (before && args.activation == Epilogue::none && y != before)
        map(
            n, y, [](V v) HWY_ATTR { return v; }, before);
      continue;
    }
    with_unary(args.activation, [&]<Unary op>() HWY_ATTR {
      if (args.bias)
        map(
            n, y, [](V v, V b) HWY_ATTR { return value<op>(hn::Add(v, b)); }, x, args.bias);
      else
        unary<op>(x, y, n);
    });
  }
}

void bias_activation_backward(const BiasActivationBackward& args, int64_t begin_row, int64_t end_row,
                              float* bias_sums) {
  const int64_t n = args.columns;
  for (int64_t row = begin_row; row < end_row; ++row) {
    const float* dy = args.dy + row * n;
    float* dx = args.dx ? args.dx + row * n : nullptr;
    if (args.activation == Epilogue::none) {
      if (dx && dx != dy)
        map(
            n, dx, [](V v) HWY_ATTR { return v; }, dy);
      if (bias_sums) axpy(1, dy, bias_sums, n);
      continue;
    }
    const float* saved = args.saved + row * n;
    with_unary(args.activation, [&]<Unary op>() HWY_ATTR { unary_backward<op>(saved, dy, dx, n); });
    if (bias_sums) axpy(1, dx, bias_sums, n);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const ElementwiseKernels elementwise_table;
const ElementwiseKernels elementwise_table{
    .unary = {unary<Unary::relu>, unary<Unary::gelu>, unary<Unary::gelu_tanh>, unary<Unary::silu>,
              unary<Unary::tanh>, unary<Unary::sigmoid>, unary<Unary::exp>, unary<Unary::log>},
    .unary_backward = {unary_backward<Unary::relu>, unary_backward<Unary::gelu>,
                       unary_backward<Unary::gelu_tanh>, unary_backward<Unary::silu>,
                       unary_backward<Unary::tanh>, unary_backward<Unary::sigmoid>,
                       unary_backward<Unary::exp>, unary_backward<Unary::log>},
    .binary = {{both_advance<Binary::add>, one_b<Binary::add>, one_a<Binary::add>},
               {both_advance<Binary::sub>, one_b<Binary::sub>, one_a<Binary::sub>},
               {both_advance<Binary::mul>, one_b<Binary::mul>, one_a<Binary::mul>},
               {both_advance<Binary::div>, one_b<Binary::div>, one_a<Binary::div>}},
    .scale = scale,
    .axpy = axpy,
    .dropout = dropout,
    .bias_activation = bias_activation,
    .bias_activation_backward = bias_activation_backward,
};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
