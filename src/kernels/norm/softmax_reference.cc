#include <cmath>
#include <limits>

#include "kernels/norm/softmax.h"

namespace fovea::kernels::scalar {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool is_seen(const Softmax& args, int64_t r, int64_t j) {
  const float* seen = args.mask.seen_row(r, args.columns);
  return j < args.mask.limit(r, args.columns) && (seen == nullptr || seen[j] != 0);
}

// Largest of what row r sees (-inf when it sees nothing) and the log of the sum of exponentials measured from
// it.
struct LogSum {
  double largest = -kInfinity, log_sum = 0;
};

LogSum log_sum(const Softmax& args, int64_t r) {
  const float* x = args.x + r * args.columns;
  LogSum result;
  for (int64_t j = 0; j < args.columns; ++j)
    if (is_seen(args, r, j)) result.largest = x[j] > result.largest ? x[j] : result.largest;
  double sum = 0;
  for (int64_t j = 0; j < args.columns; ++j)
    if (is_seen(args, r, j)) sum += std::exp(x[j] - result.largest);
  result.log_sum = std::log(sum);
  return result;
}

void log_softmax(const Softmax& args, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const LogSum total = log_sum(args, r);
    for (int64_t j = 0; j < args.columns; ++j) {
      const int64_t i = r * args.columns + j;
      const bool seen = is_seen(args, r, j) && total.largest != -kInfinity;
      args.y[i] = seen ? static_cast<float>(args.x[i] - total.largest - total.log_sum) : -kInfinity;
    }
  }
}

void softmax(const Softmax& args, int64_t begin, int64_t end) {
  log_softmax(args, begin, end);
  for (int64_t i = begin * args.columns; i < end * args.columns; ++i) args.y[i] = std::exp(args.y[i]);
}

void softmax_backward(const SoftmaxBackward& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  for (int64_t r = begin; r < end; ++r) {
    double dot = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i)
      if (args.y[i] != 0) dot += static_cast<double>(args.y[i]) * args.dy[i];
    for (int64_t i = r * n; i < (r + 1) * n; ++i)
      args.dx[i] = args.y[i] != 0 ? static_cast<float>(args.y[i] * (args.dy[i] - dot)) : 0.0f;
  }
}

void log_softmax_backward(const SoftmaxBackward& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  for (int64_t r = begin; r < end; ++r) {
    double sum = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i)
      if (args.y[i] != -kInfinity) sum += args.dy[i];
    for (int64_t i = r * n; i < (r + 1) * n; ++i)
      args.dx[i] =
          args.y[i] != -kInfinity ? static_cast<float>(args.dy[i] - std::exp(args.y[i]) * sum) : 0.0f;
  }
}

}  // namespace

extern const SoftmaxKernels softmax_table;
const SoftmaxKernels softmax_table{.softmax = softmax,
                                   .log_softmax = log_softmax,
                                   .softmax_backward = softmax_backward,
                                   .log_softmax_backward = log_softmax_backward};

}  // namespace fovea::kernels::scalar
