#include <algorithm>

#include "kernels/norm/batch_norm.h"

namespace fovea::kernels::scalar {
namespace {

void sum(const BatchMoments& args, int64_t begin, int64_t end, float* sums) {
  for (int64_t c = 0; c < args.channels; ++c) {
    double total = 0;
    for (int64_t r = begin; r < end; ++r) total += args.x[r * args.channels + c];
    sums[c] += static_cast<float>(total);
  }
}

void squares(const BatchMoments& args, int64_t begin, int64_t end, float* sums) {
  for (int64_t c = 0; c < args.channels; ++c) {
    double total = 0;
    for (int64_t r = begin; r < end; ++r) {
      const double off = double{args.x[r * args.channels + c]} - args.mean[c];
      total += off * off;
    }
    sums[c] += static_cast<float>(total);
  }
}

float activate(NormActivation activation, float value) {
  switch (activation) {
    case NormActivation::relu:
      return std::max(0.0f, value);
    case NormActivation::relu6:
      return std::min(6.0f, std::max(0.0f, value));
    case NormActivation::none:
      return value;
  }
  return value;
}

// dy through the activation that gave y.
float through(const BatchNormBackward& args, int64_t at) {
  const bool stopped = (args.activation != NormActivation::none && args.y[at] <= 0) ||
                       (args.activation == NormActivation::relu6 && args.y[at] >= 6);
  return stopped ? 0 : args.dy[at];
}

void forward(const BatchNormForward& args, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r)
    for (int64_t c = 0; c < args.channels; ++c) {
      const int64_t at = r * args.channels + c;
      const float normal = (args.x[at] - args.mean[c]) * args.rstd[c];
      args.y[at] = activate(args.activation, normal * (args.weight ? args.weight[c] : 1.0f) +
                                                 (args.bias ? args.bias[c] : 0.0f));
    }
}

void backward_sums(const BatchNormBackward& args, int64_t begin, int64_t end, float* dots, float* sums) {
  for (int64_t c = 0; c < args.channels; ++c) {
    double dot = 0, total = 0;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * args.channels + c;
      const double g = through(args, at);
      dot += g * (args.x[at] - args.mean[c]) * args.rstd[c];
      total += g;
    }
    dots[c] += static_cast<float>(dot);
    sums[c] += static_cast<float>(total);
  }
}

void backward(const BatchNormBackward& args, int64_t begin, int64_t end, const float* dots,
              const float* sums) {
  const auto rows = static_cast<float>(args.rows);
  for (int64_t r = begin; r < end; ++r)
    for (int64_t c = 0; c < args.channels; ++c) {
      const int64_t at = r * args.channels + c;
      const float normal = (args.x[at] - args.mean[c]) * args.rstd[c];
      args.dx[at] = (through(args, at) - (sums[c] + normal * dots[c]) / rows) * args.rstd[c] *
                    (args.weight ? args.weight[c] : 1.0f);
    }
}

}  // namespace

extern const BatchNormKernels batch_norm_table;
const BatchNormKernels batch_norm_table{
    .sum = sum, .squares = squares, .forward = forward, .backward_sums = backward_sums, .backward = backward};

}  // namespace fovea::kernels::scalar
