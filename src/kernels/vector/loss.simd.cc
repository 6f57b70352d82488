#include "kernels/vector/loss.h"

#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

constexpr float kInfinity = __builtin_inff();

HWY_INLINE void clear(float* y, int64_t count) {
  for_vectors(count, [y](int64_t i, int64_t lanes) HWY_ATTR { store(hn::Zero(d), y + i, lanes); });
}

// Sum of exp(x - shift) over a row; with `kept`, the exponentials are left there for the gradient.
HWY_INLINE float sum_of_exp(const float* x, float shift, int64_t n, float* kept) {
  const V center = hn::Set(d, shift);
  const auto exponential = [=](int64_t i, int64_t lanes) HWY_ATTR {
    return vmath::exp_nonpositive(d, hn::Sub(keep_first(load(x + i, lanes), lanes, -kInfinity), center));
  };
  if (!kept) return sum_of(n, exponential);
  return sum_of(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
    const V e = exponential(i, lanes);
    store(e, kept + i, lanes);
    return e;
  });
}

void cross_entropy(const CrossEntropy& args, int64_t begin, int64_t end) {
  const int64_t n = args.classes;
  const float share = args.smoothing / static_cast<float>(n), rest = 1 - args.smoothing;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.logits + r * n;
    float* gradient = args.gradient ? args.gradient + r * n : nullptr;
    const int32_t target = args.targets[r];
    const bool ignored = target == args.ignored;
    if (ignored && !args.lse) {
      args.losses[r] = 0;
      if (gradient) clear(gradient, n);
      continue;
    }
    // Pass 1 brings the row into the cache; the others find it there.
    const float largest = max_of(n, [x](int64_t i, int64_t lanes) HWY_ATTR {
      return keep_first(load(x + i, lanes), lanes, -kInfinity);
    });
    // Measured from the largest, so that large logits leave the mean its digits.
    float mean = 0;
    if (args.smoothing != 0) {
      const V center = hn::Set(d, largest);
      mean = sum_of(n, [=](int64_t i, int64_t lanes)
                           HWY_ATTR { return keep_first(hn::Sub(load(x + i, lanes), center), lanes, 0); }) /
             static_cast<float>(n);
    }
    const float at_target = ignored ? 0.0f : x[target] - largest;
    // Pass 2: the sum. The gradient may overwrite the logits from here on.
    const float sum = sum_of_exp(x, largest, n, gradient);
    const float log_sum = hn::GetLane(vmath::log(d, hn::Set(d, sum)));
    if (args.lse) args.lse[r] = largest + log_sum;
    args.losses[r] = ignored ? 0.0f : rest * (log_sum - at_target) + args.smoothing * (log_sum - mean);
    // Pass 3: probabilities minus targets.
    if (!gradient) continue;
    if (ignored) {
      clear(gradient, n);
      continue;
    }
    const V scale = hn::Set(d, args.gradient_scale / sum), offset = hn::Set(d, -args.gradient_scale * share);
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      store(hn::MulAdd(load(gradient + i, lanes), scale, offset), gradient + i, lanes);
    });
    gradient[target] -= args.gradient_scale * rest;
  }
}

void cross_entropy_backward(const CrossEntropyBackward& args, int64_t begin, int64_t end) {
  const int64_t n = args.classes;
  const float share = args.smoothing / static_cast<float>(n);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.logits + r * n;
    float* dx = args.d_logits + r * n;
    const int32_t target = args.targets[r];
    if (target == args.ignored) {
      clear(dx, n);
      continue;
    }
    const float factor = args.d_losses[r];
    const V lse = hn::Set(d, args.lse[r]), scale = hn::Set(d, factor), offset = hn::Set(d, -factor * share);
    for_vectors(n, [=](int64_t i, int64_t lanes) HWY_ATTR {
      const V p = vmath::exp_nonpositive(d, vmath::at_most(hn::Zero(d), hn::Sub(load(x + i, lanes), lse)));
      store(hn::MulAdd(p, scale, offset), dx + i, lanes);
    });
    dx[target] -= factor * (1 - args.smoothing);
  }
}

}  // namespace

namespace FOVEA_LEVEL {
extern const LossKernels loss_table;
const LossKernels loss_table{.cross_entropy = cross_entropy,
                             .cross_entropy_backward = cross_entropy_backward};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
