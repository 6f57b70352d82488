#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/vector/topk.h"

namespace fovea::kernels::scalar {
namespace {

void summarise(int64_t count, const float* x, float* largest, float* sums) {
  for (int64_t begin = 0; begin < count; begin += kTopBlock) {
    const float* const end = x + std::min(count, begin + kTopBlock);
    *largest = -std::numeric_limits<float>::infinity();
    for (const float* p = x + begin; p < end; ++p) *largest = std::max(*largest, *p);
    double sum = 0;
    for (const float* p = x + begin; p < end; ++p)
      sum += std::exp(*p - (std::isinf(*largest) && *largest < 0 ? 0 : *largest));
    *sums++ = static_cast<float>(sum);
    ++largest;
  }
}

// Asks x itself, and needs no summary.
TopKResult top_k(const TopK& args) {
  TopKResult result;
  result.largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < args.count; ++i) result.largest = std::max(result.largest, args.x[i]);
  double sum = 0;
  for (int64_t i = 0; i < args.count; ++i) sum += std::exp(args.x[i] - result.largest);
  result.sum = static_cast<float>(sum);
  if (std::isnan(result.sum)) return result;

  std::vector<int32_t> order;
  for (int32_t i = 0; i < args.count; ++i)
    if (i != args.skipped) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return args.x[a] > args.x[b]; });
  result.found = std::min<int64_t>(args.wanted, static_cast<int64_t>(order.size()));
  for (int64_t i = 0; i < result.found; ++i) {
    args.columns[i] = order[static_cast<size_t>(i)];
    args.values[i] = args.x[args.columns[i]];
  }
  return result;
}

int64_t candidates(const Uncertain& row) {
  const auto margin = [&](int64_t j) {
    return row.length * row.errors[j] + (row.error * row.norms[j] + row.slack);
  };
  float bar = -std::numeric_limits<float>::infinity();
  for (int64_t j = 0; j < row.count; ++j) {
    if (j != row.skipped && !std::isfinite(row.x[j])) return 0;
    if (j != row.skipped) bar = std::max(bar, row.x[j] - margin(j));
  }
  int64_t found = 0;
  for (int64_t j = 0; j < row.count; ++j)
    if (j != row.skipped && row.x[j] + margin(j) >= bar) row.columns[found++] = static_cast<int32_t>(j);
  return found;
}

}  // namespace

extern const TopKKernels top_k_table;
const TopKKernels top_k_table{.summarise = summarise, .top_k = top_k, .candidates = candidates};

}  // namespace fovea::kernels::scalar
