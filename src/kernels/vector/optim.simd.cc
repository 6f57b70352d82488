// The update of each optimiser on a chunk of a tensor, in SIMD.
#include "kernels/vector/optim.h"

#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr D d;

// One element-wise rule over a range. Rule::update(weight, gradient, states...) works on vectors in place;
// kStates names the states it needs (a mask of bits). A null gradient is zeros, by the same arithmetic.
template <class Rule, bool has_gradient>
HWY_INLINE void run_rule(const OptimRange& r, const OptimCoefficients& c) {
  const Rule rule(c);
  const V scale = hn::Set(d, c.gradient_scale), weight_decay = hn::Set(d, c.weight_decay);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  const auto step = [&](auto load, auto store) HWY_ATTR {
    V weight = load(r.weight + i);
    V gradient = hn::Zero(d);
    if constexpr (has_gradient) gradient = hn::Mul(load(r.gradient + i), scale);
    gradient = hn::MulAdd(weight_decay, weight, gradient);
    V state[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (int s = 0; s < 3; ++s)
      if (Rule::kStates >> s & 1) state[s] = load(r.state[s] + i);
    rule.update(weight, gradient, state);
    for (int s = 0; s < 3; ++s)
      if (Rule::kStates >> s & 1) store(state[s], r.state[s] + i);
    store(weight, r.weight + i);
  };
  for (; i + lanes <= r.count; i += lanes)
    step([](const float* p) HWY_ATTR { return hn::LoadU(d, p); },
         [](V v, float* p) HWY_ATTR { hn::StoreU(v, d, p); });
  if (const int64_t rest = r.count - i; rest > 0)
    step([rest](const float* p) HWY_ATTR { return load_first(d, p, rest); },
         [rest](V v, float* p) HWY_ATTR { store_first(v, d, p, rest); });
}

template <class Rule>
void run(const OptimRange& r, const OptimCoefficients& c) {
  if (r.gradient)
    run_rule<Rule, true>(r, c);
  else
    run_rule<Rule, false>(r, c);
}

struct Sgd {
  static constexpr int kStates = 0;
  explicit Sgd(const OptimCoefficients& c) : learning_rate(hn::Set(d, c.learning_rate)) {}
  HWY_INLINE void update(V& weight, V gradient, V*) const {
    weight = hn::NegMulAdd(learning_rate, gradient, weight);
  }
  V learning_rate;
};

template <bool nesterov>
struct SgdMomentum {
  static constexpr int kStates = 1;
  explicit SgdMomentum(const OptimCoefficients& c)
      : learning_rate(hn::Set(d, c.learning_rate)), decay(hn::Set(d, c.decay1)), gain(hn::Set(d, c.gain1)) {}
  HWY_INLINE void update(V& weight, V gradient, V* state) const {
    state[0] = hn::MulAdd(decay, state[0], hn::Mul(gain, gradient));
    const V step = nesterov ? hn::MulAdd(decay, state[0], gradient) : state[0];
    weight = hn::NegMulAdd(learning_rate, step, weight);
  }
  V learning_rate, decay, gain;
};

// sqrt(x) for x >= 0 to 2 ulp. The divider is what bounds Adam (a square root and a division on one port), so
// on x86 the root comes from the reciprocal estimate and one step of Newton's method. Below 1e-30 it is
// 1e-15: with less, the step's rest would be denormal, and slow, in every row of an embedding not yet used.
HWY_INLINE V fast_sqrt(V x) {
#if HWY_ARCH_X86
  const V safe = hn::Max(x, hn::Set(d, 1e-30f));
  const V estimate = hn::ApproximateReciprocalSqrt(safe), root = hn::Mul(safe, estimate);
  const V rest = hn::NegMulAdd(root, root, safe);
  return hn::MulAdd(hn::Mul(hn::Set(d, 0.5f), estimate), rest, root);
#else
  return hn::Sqrt(x);
#endif
}

struct Adam {
  static constexpr int kStates = 3;
  explicit Adam(const OptimCoefficients& c)
      : learning_rate(hn::Set(d, c.learning_rate)),
        keep(hn::Set(d, c.keep)),
        gain1(hn::Set(d, c.gain1)),
        decay2(hn::Set(d, c.decay2)),
        gain2(hn::Set(d, c.gain2)),
        epsilon(hn::Set(d, c.epsilon)),
        root_scale(hn::Set(d, c.root_scale)) {}
  HWY_INLINE void update(V& weight, V gradient, V* state) const {
    state[0] = hn::MulAdd(gain1, hn::Sub(gradient, state[0]), state[0]);
    state[1] = hn::MulAdd(decay2, state[1], hn::Mul(hn::Mul(gain2, gradient), gradient));
    const V root = hn::MulAdd(fast_sqrt(state[1]), root_scale, epsilon);
    weight = hn::NegMulAdd(learning_rate, hn::Div(state[0], root), hn::Mul(weight, keep));
  }
  V learning_rate, keep, gain1, decay2, gain2, epsilon, root_scale;
};

struct AdaDelta {
  static constexpr int kStates = 3;
  explicit AdaDelta(const OptimCoefficients& c)
      : learning_rate(hn::Set(d, c.learning_rate)),
        decay2(hn::Set(d, c.decay2)),
        gain2(hn::Set(d, c.gain2)),
        epsilon(hn::Set(d, c.epsilon)) {}
  HWY_INLINE void update(V& weight, V gradient, V* state) const {
    state[0] = hn::MulAdd(decay2, state[0], hn::Mul(hn::Mul(gain2, gradient), gradient));
    const V ratio = hn::Div(hn::Sqrt(hn::Add(state[1], epsilon)), hn::Sqrt(hn::Add(state[0], epsilon)));
    const V step = hn::Mul(ratio, gradient);
    state[1] = hn::MulAdd(decay2, state[1], hn::Mul(hn::Mul(gain2, step), step));
    weight = hn::NegMulAdd(learning_rate, step, weight);
  }
  V learning_rate, decay2, gain2, epsilon;
};

struct Adagrad {
  static constexpr int kStates = 1;
  explicit Adagrad(const OptimCoefficients& c)
      : learning_rate(hn::Set(d, c.learning_rate)), epsilon(hn::Set(d, c.epsilon)) {}
  HWY_INLINE void update(V& weight, V gradient, V* state) const {
    state[0] = hn::MulAdd(gradient, gradient, state[0]);
    weight = hn::NegMulAdd(learning_rate, hn::Div(gradient, hn::Add(hn::Sqrt(state[0]), epsilon)), weight);
  }
  V learning_rate, epsilon;
};

template <bool momentum, bool centered>
struct Rmsprop {
  static constexpr int kStates = 1 | momentum << 1 | centered << 2;
  explicit Rmsprop(const OptimCoefficients& c)
      : learning_rate(hn::Set(d, c.learning_rate)),
        decay1(hn::Set(d, c.decay1)),
        decay2(hn::Set(d, c.decay2)),
        gain2(hn::Set(d, c.gain2)),
        epsilon(hn::Set(d, c.epsilon)) {}
  HWY_INLINE void update(V& weight, V gradient, V* state) const {
    state[0] = hn::MulAdd(decay2, state[0], hn::Mul(hn::Mul(gain2, gradient), gradient));
    V variance = state[0];
    if constexpr (centered) {
      state[2] = hn::MulAdd(gain2, hn::Sub(gradient, state[2]), state[2]);
      variance = hn::NegMulAdd(state[2], state[2], variance);
    }
    V step = hn::Div(gradient, hn::Add(hn::Sqrt(variance), epsilon));
    if constexpr (momentum) step = state[1] = hn::MulAdd(decay1, state[1], step);
    weight = hn::NegMulAdd(learning_rate, step, weight);
  }
  V learning_rate, decay1, decay2, gain2, epsilon;
};

void ema(float* average, const float* weight, int64_t count, float gain) {
  const V factor = hn::Set(d, gain);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V old = hn::LoadU(d, average + i);
    hn::StoreU(hn::MulAdd(factor, hn::Sub(hn::LoadU(d, weight + i), old), old), d, average + i);
  }
  if (const int64_t rest = count - i; rest > 0) {
    const V old = load_first(d, average + i, rest);
    store_first(hn::MulAdd(factor, hn::Sub(load_first(d, weight + i, rest), old), old), d, average + i, rest);
  }
}

double sum_of_squares(const float* values, int64_t count) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(wide));
  const auto square_onto = [&](auto sum, auto floats) HWY_ATTR {
    const auto x = hn::PromoteTo(wide, floats);
    return hn::MulAdd(x, x, sum);
  };
  auto sum0 = hn::Zero(wide), sum1 = sum0, sum2 = sum0, sum3 = sum0;  // four chains hide the latency of FMA
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    sum0 = square_onto(sum0, hn::LoadU(narrow, values + i));
    sum1 = square_onto(sum1, hn::LoadU(narrow, values + i + lanes));
    sum2 = square_onto(sum2, hn::LoadU(narrow, values + i + 2 * lanes));
    sum3 = square_onto(sum3, hn::LoadU(narrow, values + i + 3 * lanes));
  }
  double tail = 0;
  for (; i < count; ++i) tail += static_cast<double>(values[i]) * values[i];
  return hn::GetLane(hn::SumOfLanes(wide, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)))) + tail;
}

}  // namespace

namespace FOVEA_LEVEL {
extern const OptimKernels optim_table;
const OptimKernels optim_table{
    .sgd = run<Sgd>,
    .sgd_momentum = run<SgdMomentum<false>>,
    .sgd_nesterov = run<SgdMomentum<true>>,
    .adam = run<Adam>,
    .adadelta = run<AdaDelta>,
    .adagrad = run<Adagrad>,
    .rmsprop = {{run<Rmsprop<false, false>>, run<Rmsprop<false, true>>},
                {run<Rmsprop<true, false>>, run<Rmsprop<true, true>>}},
    .ema = ema,
    .sum_of_squares = sum_of_squares,
};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
