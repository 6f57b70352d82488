#include <cmath>

#include "kernels/norm/norm.h"

namespace fovea::kernels::scalar {
namespace {

void forward(const NormForward& args, int64_t begin, int64_t end, float* row) {
  const int64_t n = args.columns;
  for (int64_t r = begin; r < end; ++r) {
    float* s = args.sum ? args.sum + r * n : row;
    for (int64_t j = 0; j < n; ++j) {
      const float x = args.x[r * n + j] * (args.dropout.active() ? args.dropout.factor(r * n + j) : 1.0f);
      s[j] = (args.residual ? args.residual[r * n + j] : 0.0f) + x;
    }
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < n; ++j) mean += s[j];
    mean /= static_cast<double>(n);
    for (int64_t j = 0; j < n; ++j) variance += (s[j] - mean) * (s[j] - mean);
    variance /= static_cast<double>(n);
    const double rstd = 1 / std::sqrt(variance + args.epsilon);
    for (int64_t j = 0; j < n; ++j) {
      const double normal = (s[j] - mean) * rstd;
      args.y[r * n + j] = static_cast<float>(normal * (args.weight ? args.weight[j] : 1.0f) +
                                             (args.bias ? args.bias[j] : 0.0f));
    }
    if (args.mean) args.mean[r] = static_cast<float>(mean);
    if (args.rstd) args.rstd[r] = static_cast<float>(rstd);
  }
}

void backward(const NormBackward& args, int64_t begin, int64_t end, float* d_weight, float* d_bias) {
  const int64_t n = args.columns;
  for (int64_t r = begin; r < end; ++r) {
    const double mean = args.mean[r], rstd = args.rstd[r];
    const auto normal = [&](int64_t j) { return (args.sum[r * n + j] - mean) * rstd; };
    const auto d_normal = [&](int64_t j) {
      return static_cast<double>(args.dy[r * n + j]) * (args.weight ? args.weight[j] : 1.0f);
    };
    double sum = 0, dot = 0;  // of the gradient of the normalised row, alone and with that row
    for (int64_t j = 0; j < n; ++j) {
      sum += d_normal(j);
      dot += d_normal(j) * normal(j);
    }
    for (int64_t j = 0; j < n; ++j) {
      const int64_t i = r * n + j;
      if (d_weight) d_weight[j] += static_cast<float>(args.dy[i] * normal(j));
      if (d_bias) d_bias[j] += args.dy[i];
      const double d_s = rstd * (d_normal(j) - (sum + normal(j) * dot) / static_cast<double>(n));
      const float total = static_cast<float>(d_s) + (args.d_sum ? args.d_sum[i] : 0.0f);
      if (args.d_x) args.d_x[i] = total * (args.dropout.active() ? args.dropout.factor(i) : 1.0f);
      if (args.d_residual) args.d_residual[i] = total;
    }
  }
}

}  // namespace

extern const NormKernels norm_table;
const NormKernels norm_table{.forward = forward, .backward = backward};

}  // namespace fovea::kernels::scalar
