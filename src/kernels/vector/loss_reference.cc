#include <algorithm>
#include <cmath>

#include "kernels/vector/loss.h"

namespace fovea::kernels::scalar {
namespace {

// The gradient of one row's loss by logit j.
double slope(double logit, double lse, bool is_target, double smoothing, int64_t classes) {
  return std::exp(logit - lse) - smoothing / static_cast<double>(classes) - (is_target ? 1 - smoothing : 0);
}

void cross_entropy(const CrossEntropy& args, int64_t begin, int64_t end) {
  const int64_t n = args.classes;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.logits + r * n;
    const int32_t target = args.targets[r];
    double largest = x[0], sum = 0, total = 0;
    for (int64_t j = 0; j < n; ++j) largest = std::max<double>(largest, x[j]);
    for (int64_t j = 0; j < n; ++j) {
      sum += std::exp(x[j] - largest);
      total += x[j];
    }
    const double lse = largest + std::log(sum);
    const bool ignored = target == args.ignored;
    args.losses[r] = ignored ? 0.0f
                             : static_cast<float>((1 - args.smoothing) * (lse - x[target]) +
                                                  args.smoothing * (lse - total / static_cast<double>(n)));
    if (args.lse) args.lse[r] = static_cast<float>(lse);
    if (!args.gradient) continue;
    for (int64_t j = 0; j < n; ++j)
      args.gradient[r * n + j] =
          ignored
              ? 0.0f
              : static_cast<float>(args.gradient_scale * slope(x[j], lse, j == target, args.smoothing, n));
  }
}

void cross_entropy_backward(const CrossEntropyBackward& args, int64_t begin, int64_t end) {
  const int64_t n = args.classes;
  for (int64_t r = begin; r < end; ++r)
    for (int64_t j = 0; j < n; ++j) {
      const int32_t target = args.targets[r];
      const double d = slope(args.logits[r * n + j], args.lse[r], j == target, args.smoothing, n);
      args.d_logits[r * n + j] = target == args.ignored ? 0.0f : static_cast<float>(args.d_losses[r] * d);
    }
}

}  // namespace

extern const LossKernels loss_table;
const LossKernels loss_table{.cross_entropy = cross_entropy,
                             .cross_entropy_backward = cross_entropy_backward};

}  // namespace fovea::kernels::scalar
