// Sums, normalisation and gradients of batch norm over rows, in SIMD.
#include "kernels/norm/batch_norm.h"

#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

// A vector of channels at a time, down the rows: what belongs to the channels stays in registers. Rows are
// few enough (a block, a piece) to lie in the first caches between two vectors.

HWY_INLINE V or_value(const float* values, int64_t c, int64_t lanes, float otherwise) {
  return values ? load(values + c, lanes) : hn::Set(d, otherwise);
}

// sums[c] += sum of term(row, c, lanes) over rows [begin, end): four chains hide the latency of the
// additions.
template <class Term>
HWY_INLINE void add_down(int64_t begin, int64_t end, int64_t c, int64_t lanes, float* sums, Term term) {
  V sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  int64_t r = begin;
  for (; r + 4 <= end; r += 4) {
    sum0 = hn::Add(sum0, term(r));
    sum1 = hn::Add(sum1, term(r + 1));
    sum2 = hn::Add(sum2, term(r + 2));
    sum3 = hn::Add(sum3, term(r + 3));
  }
  for (; r < end; ++r) sum0 = hn::Add(sum0, term(r));
  const V total = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  store(hn::Add(load(sums + c, lanes), total), sums + c, lanes);
}

void sum(const BatchMoments& args, int64_t begin, int64_t end, float* sums) {
  const int64_t n = args.channels;
  for_vectors(n, [&](int64_t c, int64_t lanes) HWY_ATTR {
    const float* x = args.x + c;
    add_down(begin, end, c, lanes, sums, [=](int64_t r) HWY_ATTR { return load(x + r * n, lanes); });
  });
}

void squares(const BatchMoments& args, int64_t begin, int64_t end, float* sums) {
  const int64_t n = args.channels;
  for_vectors(n, [&](int64_t c, int64_t lanes) HWY_ATTR {
    const float* x = args.x + c;
    const V mean = load(args.mean + c, lanes);
    add_down(begin, end, c, lanes, sums, [=](int64_t r) HWY_ATTR {
      const V off = hn::Sub(load(x + r * n, lanes), mean);
      return hn::Mul(off, off);
    });
  });
}

template <NormActivation activation>
HWY_INLINE V normed(V x, V mean, V scale, V bias) {
  V value = hn::MulAdd(hn::Sub(x, mean), scale, bias);
  if constexpr (activation != NormActivation::none) value = hn::Max(value, hn::Zero(d));
  if constexpr (activation == NormActivation::relu6) value = hn::Min(value, hn::Set(d, 6.0f));
  return value;
}

// kVectors vectors of channels from c on, all of them whole unless there is one.
template <NormActivation activation, int kVectors>
HWY_INLINE void forward_strip(const BatchNormForward& args, int64_t begin, int64_t end, int64_t c,
                              int64_t lanes) {
  const int64_t n = args.channels;
  V mean[kVectors], bias[kVectors], scale[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = c + v * kLanes;
    mean[v] = load(args.mean + at, lanes);
    bias[v] = or_value(args.bias, at, lanes, 0.0f);
    scale[v] = hn::Mul(load(args.rstd + at, lanes), or_value(args.weight, at, lanes, 1.0f));
  }
  for (int64_t r = begin; r < end; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = r * n + c + v * kLanes;
      store(normed<activation>(load(args.x + at, lanes), mean[v], scale[v], bias[v]), args.y + at, lanes);
    }
  }
}

template <NormActivation activation>
HWY_INLINE void forward_rows(const BatchNormForward& args, int64_t begin, int64_t end) {
  const int64_t n = args.channels;
  int64_t c = 0;
  for (; c + 4 * kLanes <= n; c += 4 * kLanes) forward_strip<activation, 4>(args, begin, end, c, kLanes);
  for (; c + kLanes <= n; c += kLanes) forward_strip<activation, 1>(args, begin, end, c, kLanes);
  if (c < n) forward_strip<activation, 1>(args, begin, end, c, n - c);
}

void forward(const BatchNormForward& args, int64_t begin, int64_t end) {
  switch (args.activation) {
    case NormActivation::none:
      return forward_rows<NormActivation::none>(args, begin, end);
    case NormActivation::relu:
      return forward_rows<NormActivation::relu>(args, begin, end);
    case NormActivation::relu6:
      return forward_rows<NormActivation::relu6>(args, begin, end);
  }
}

// dy through the activation that gave y; 0 past the end.
template <NormActivation activation>
HWY_INLINE V through(const BatchNormBackward& args, int64_t at, int64_t lanes) {
  V g = load(args.dy + at, lanes);
  if constexpr (activation != NormActivation::none) {
    const V y = load(args.y + at, lanes);
    g = hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), g);
    if constexpr (activation == NormActivation::relu6) g = hn::IfThenElseZero(hn::Lt(y, hn::Set(d, 6.0f)), g);
  }
  return g;
}

template <NormActivation activation>
HWY_INLINE void sum_gradients(const BatchNormBackward& args, int64_t begin, int64_t end, float* dots,
                              float* sums) {
  const int64_t n = args.channels;
  for_vectors(n, [&](int64_t c, int64_t lanes) HWY_ATTR {
    const V mean = load(args.mean + c, lanes), rstd = load(args.rstd + c, lanes);
    V dot0 = hn::Zero(d), dot1 = dot0, sum0 = dot0, sum1 = dot0;
    const auto step = [&](int64_t r, V& dot, V& sum) HWY_ATTR {
      const int64_t at = r * n + c;
      const V g = through<activation>(args, at, lanes);
      dot = hn::MulAdd(g, hn::Mul(hn::Sub(load(args.x + at, lanes), mean), rstd), dot);
      sum = hn::Add(sum, g);
    };
    int64_t r = begin;
    for (; r + 2 <= end; r += 2) {
      step(r, dot0, sum0);
      step(r + 1, dot1, sum1);
    }
    if (r < end) step(r, dot0, sum0);
    store(hn::Add(load(dots + c, lanes), hn::Add(dot0, dot1)), dots + c, lanes);
    store(hn::Add(load(sums + c, lanes), hn::Add(sum0, sum1)), sums + c, lanes);
  });
}

void backward_sums(const BatchNormBackward& args, int64_t begin, int64_t end, float* dots, float* sums) {
  switch (args.activation) {
    case NormActivation::none:
      return sum_gradients<NormActivation::none>(args, begin, end, dots, sums);
    case NormActivation::relu:
      return sum_gradients<NormActivation::relu>(args, begin, end, dots, sums);
    case NormActivation::relu6:
      return sum_gradients<NormActivation::relu6>(args, begin, end, dots, sums);
  }
}

template <NormActivation activation>
HWY_INLINE void backward_rows(const BatchNormBackward& args, int64_t begin, int64_t end, const float* dots,
                              const float* sums) {
  const int64_t n = args.channels;
  const V share = hn::Set(d, 1 / static_cast<float>(args.rows));
  for_vectors(n, [&](int64_t c, int64_t lanes) HWY_ATTR {
    const V mean = load(args.mean + c, lanes), rstd = load(args.rstd + c, lanes);
    const V scale = hn::Mul(rstd, or_value(args.weight, c, lanes, 1.0f));
    // g - sum / rows - (x - mean) * along
    const V along = hn::Mul(hn::Mul(load(dots + c, lanes), share), rstd);
    const V shift = hn::Mul(load(sums + c, lanes), share);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * n + c;
      const V off = hn::Sub(load(args.x + at, lanes), mean);
      const V g = hn::Sub(through<activation>(args, at, lanes), hn::MulAdd(off, along, shift));
      store(hn::Mul(g, scale), args.dx + at, lanes);
    }
  });
}

void backward(const BatchNormBackward& args, int64_t begin, int64_t end, const float* dots,
              const float* sums) {
  switch (args.activation) {
    case NormActivation::none:
      return backward_rows<NormActivation::none>(args, begin, end, dots, sums);
    case NormActivation::relu:
      return backward_rows<NormActivation::relu>(args, begin, end, dots, sums);
    case NormActivation::relu6:
      return backward_rows<NormActivation::relu6>(args, begin, end, dots, sums);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const BatchNormKernels batch_norm_table;
const BatchNormKernels batch_norm_table{
    .sum = sum, .squares = squares, .forward = forward, .backward_sums = backward_sums, .backward = backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
