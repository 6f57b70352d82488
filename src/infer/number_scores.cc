#include "infer/number_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace fovea::infer {
namespace {

using Numbers = std::vector<double>;

double correlation(const Numbers& a, const Numbers& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] - mean_a, y = b[i] - mean_b;
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// From 1; equals share the mean of theirs.
Numbers ranks(const Numbers& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  Numbers ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
    begin = end;
  }
  return ranks;
}

}  // namespace

NumberScores score_numbers(std::span<const float> predictions, std::span<const float> wanted) {
  require(predictions.size() == wanted.size() && !predictions.empty(), "scores: ", predictions.size(),
          " numbers predicted for ", wanted.size(), " texts, wanted as many, and at least one");
  const Numbers a(predictions.begin(), predictions.end()), b(wanted.begin(), wanted.end());
  NumberScores scores{.pearson = correlation(a, b), .spearman = correlation(ranks(a), ranks(b))};
  for (size_t i = 0; i < a.size(); ++i) {
    scores.squared_error += (a[i] - b[i]) * (a[i] - b[i]) / static_cast<double>(a.size());
    scores.absolute_error += std::abs(a[i] - b[i]) / static_cast<double>(a.size());
  }
  return scores;
}

}  // namespace fovea::infer
