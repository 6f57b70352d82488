// Layer norm of rows with dropout and residual, forward and backward, in SIMD.
#include "kernels/norm/norm.h"

#include "kernels/vector/vector_philox-inl.h"
#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

// s = residual + x * factors; `residual` and dropout may be absent.
HWY_INLINE void residual_sum(const float* x, const float* residual, const DropoutFactors* factors,
                             int64_t first, int64_t count, float* s) {
  HWY_ALIGN float room[DropoutFactors::kRoom];
  for (int64_t done = 0; done < count; done += DropoutFactors::kBlock) {
    const int64_t block = HWY_MIN(DropoutFactors::kBlock, count - done);
    const float* factor = factors ? factors->fill(first + done, block, room) : nullptr;
    for_vectors(block, [&](int64_t i, int64_t lanes) HWY_ATTR {
      const int64_t at = done + i;
      const V base = residual ? load(residual + at, lanes) : hn::Zero(d);
      const V value = load(x + at, lanes);
      // Factors are readable to the end of their vector: the room is larger than the block.
      store(factor ? hn::MulAdd(value, hn::LoadU(d, factor + i), base) : hn::Add(value, base), s + at, lanes);
    });
  }
}

// y = normal * weight + bias, with what is absent left out.
template <bool has_weight, bool has_bias>
HWY_INLINE void write_row(const NormForward& args, const float* s, float mean, float rstd, float* y) {
  const V scale = hn::Set(d, rstd), center = hn::Set(d, mean);
  for_vectors(args.columns, [&](int64_t i, int64_t lanes) HWY_ATTR {
    V value = hn::Mul(hn::Sub(load(s + i, lanes), center), scale);
    if constexpr (has_weight && has_bias)
      value = hn::MulAdd(value, load(args.weight + i, lanes), load(args.bias + i, lanes));
    else if constexpr (has_weight)
      value = hn::Mul(value, load(args.weight + i, lanes));
    else if constexpr (has_bias)
      value = hn::Add(value, load(args.bias + i, lanes));
    store(value, y + i, lanes);
  });
}

void forward(const NormForward& args, int64_t begin, int64_t end, float* row) {
  const int64_t n = args.columns;
  const float inverse = 1 / static_cast<float>(n);
  const DropoutFactors factors(args.dropout.seed, args.dropout.threshold(), args.dropout.scale());
  const bool plain = !args.residual && !args.dropout.active() && !args.sum;
  for (int64_t r = begin; r < end; ++r) {
    // Pass 1: the row to normalise. From here on it is in the first-level cache.
    const float* s = args.x + r * n;
    if (!plain) {
      float* into = args.sum ? args.sum + r * n : row;
      residual_sum(s, args.residual ? args.residual + r * n : nullptr,
                   args.dropout.active() ? &factors : nullptr, r * n, n, into);
      s = into;
    }
    // Pass 2 and 3: mean, then variance around it; the one-pass formula loses digits.
    const float mean =
        inverse * sum_of(n, [s](int64_t i, int64_t lanes) HWY_ATTR { return load(s + i, lanes); });
    const V center = hn::Set(d, mean);
    const float squares = sum_of(n, [s, center](int64_t i, int64_t lanes) HWY_ATTR {
      V off = hn::Sub(load(s + i, lanes), center);
      if (lanes < kLanes) off = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(lanes)), off);
      return hn::Mul(off, off);
    });
    const float rstd = 1 / __builtin_sqrtf(squares * inverse + args.epsilon);
    // Pass 4: the result.
    float* y = args.y + r * n;
    if (args.weight && args.bias)
      write_row<true, true>(args, s, mean, rstd, y);
    else if (args.weight)
      write_row<true, false>(args, s, mean, rstd, y);
    else if (args.bias)
      write_row<false, true>(args, s, mean, rstd, y);
    else
      write_row<false, false>(args, s, mean, rstd, y);
    if (args.mean) args.mean[r] = mean;
    if (args.rstd) args.rstd[r] = rstd;
  }
}

struct RowSums {
  float sum, dot;
};

// One row's sums of the gradient of the normalised row, alone and with that row; adds to d_weight and d_bias.
template <bool has_weight, bool wants_parameters>
HWY_INLINE RowSums sum_row(const float* dy, const float* s, const float* weight, float mean, float rstd,
                           int64_t n, float* d_weight, float* d_bias) {
  const V scale = hn::Set(d, rstd), center = hn::Set(d, mean);
  V sums[2] = {hn::Zero(d), hn::Zero(d)}, dots[2] = {hn::Zero(d), hn::Zero(d)};
  const auto step = [&](int64_t i, int64_t lanes, int chain) HWY_ATTR {
    const V g = load(dy + i, lanes);  // 0 past the end, which silences those lanes everywhere below
    const V normal = hn::Mul(hn::Sub(load(s + i, lanes), center), scale);
    const V product = hn::Mul(g, normal);
    if constexpr (wants_parameters) {
      store(hn::Add(load(d_weight + i, lanes), product), d_weight + i, lanes);
      store(hn::Add(load(d_bias + i, lanes), g), d_bias + i, lanes);
    }
    if constexpr (has_weight) {
      const V w = load(weight + i, lanes);
      sums[chain] = hn::MulAdd(g, w, sums[chain]);
      dots[chain] = hn::MulAdd(product, w, dots[chain]);
    } else {
      sums[chain] = hn::Add(sums[chain], g);
      dots[chain] = hn::Add(dots[chain], product);
    }
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    step(i, kLanes, 0);
    step(i + kLanes, kLanes, 1);
  }
  for_vectors(n - i, [&](int64_t j, int64_t lanes) HWY_ATTR { step(i + j, lanes, 0); });
  return {hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[0], sums[1]))),
          hn::GetLane(hn::SumOfLanes(d, hn::Add(dots[0], dots[1])))};
}

template <bool has_weight, bool wants_parameters>
HWY_INLINE void backward_rows(const NormBackward& args, int64_t begin, int64_t end, float* d_weight,
                              float* d_bias) {
  const int64_t n = args.columns;
  const float inverse = 1 / static_cast<float>(n);
  const DropoutFactors factors(args.dropout.seed, args.dropout.threshold(), args.dropout.scale());
  HWY_ALIGN float room[DropoutFactors::kRoom];
  for (int64_t r = begin; r < end; ++r) {
    const float *dy = args.dy + r * n, *s = args.sum + r * n;
    const float* extra = args.d_sum ? args.d_sum + r * n : nullptr;
    const float mean = args.mean[r], rstd = args.rstd[r];
    const auto [sum, dot] =
        sum_row<has_weight, wants_parameters>(dy, s, args.weight, mean, rstd, n, d_weight, d_bias);
    // rstd * (g w - sum / n - normal * dot / n), with normal = (s - mean) * rstd, as g * (w rstd) + (s -
    // mean) * a + b
    const V scale = hn::Set(d, rstd), center = hn::Set(d, mean);
    const V a = hn::Set(d, -rstd * rstd * dot * inverse), b = hn::Set(d, -rstd * sum * inverse);
    const auto gradient_at = [&](int64_t i, int64_t lanes) HWY_ATTR {
      V g = hn::Mul(load(dy + i, lanes), scale);
      if constexpr (has_weight) g = hn::Mul(g, load(args.weight + i, lanes));
      g = hn::Add(g, hn::MulAdd(hn::Sub(load(s + i, lanes), center), a, b));
      return extra ? hn::Add(g, load(extra + i, lanes)) : g;
    };
    float* d_residual = args.d_residual ? args.d_residual + r * n : nullptr;
    float* d_x = args.d_x ? args.d_x + r * n : nullptr;
    if (!d_x || !args.dropout.active()) {
      for_vectors(n, [&](int64_t i, int64_t lanes) HWY_ATTR {
        const V g = gradient_at(i, lanes);
        if (d_residual) store(g, d_residual + i, lanes);
        if (d_x) store(g, d_x + i, lanes);
      });
      continue;
    }
    for (int64_t done = 0; done < n; done += DropoutFactors::kBlock) {
      const int64_t block = HWY_MIN(DropoutFactors::kBlock, n - done);
      const float* factor = factors.fill(r * n + done, block, room);
      for_vectors(block, [&](int64_t i, int64_t lanes) HWY_ATTR {
        const V g = gradient_at(done + i, lanes);
        if (d_residual) store(g, d_residual + done + i, lanes);
        store(hn::Mul(g, hn::LoadU(d, factor + i)), d_x + done + i, lanes);
      });
    }
  }
}

void backward(const NormBackward& args, int64_t begin, int64_t end, float* d_weight, float* d_bias) {
  if (args.weight && d_weight)
    backward_rows<true, true>(args, begin, end, d_weight, d_bias);
  else if (args.weight)
    backward_rows<true, false>(args, begin, end, d_weight, d_bias);
  else if (d_weight)
    backward_rows<false, true>(args, begin, end, d_weight, d_bias);
  else
    backward_rows<false, false>(args, begin, end, d_weight, d_bias);
}

}  // namespace

namespace FOVEA_LEVEL {
extern const NormKernels norm_table;
const NormKernels norm_table{.forward = forward, .backward = backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
