#include "infer/length_batches.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/stop_check.h"

namespace fovea {
namespace {

struct Range {
  size_t begin, end;
};

// Below this many sentences a batch reads the weights more often than its rows are worth.
constexpr size_t kLeastShare = 4;

// Cuts of `order` that keep the limits; where there are fewer than threads, as many as there are threads.
std::vector<Range> cut(std::span<const size_t> order, std::span<const int64_t> lengths,
                       const BatchLimits& limits) {
  std::vector<Range> batches;
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    int64_t tokens = lengths[order[begin]];
    for (end = begin + 1; end < order.size(); ++end) {
      tokens += lengths[order[end]];
      if (limits.tokens > 0 && tokens > limits.tokens) break;
      if (limits.sentences > 0 && static_cast<int64_t>(end - begin) == limits.sentences) break;
    }
    batches.push_back({begin, end});
  }
  const auto threads = static_cast<size_t>(num_threads());
  if (batches.size() >= threads || batches.empty()) return batches;
  const size_t pieces =
      std::max(batches.size(), std::min(threads, std::max<size_t>(1, order.size() / kLeastShare)));
  if (pieces == batches.size()) return batches;
  std::vector<Range> even;
  for (size_t i = 0; i < pieces; ++i)
    even.push_back({i * order.size() / pieces, (i + 1) * order.size() / pieces});
  return even;
}

}  // namespace

void for_length_batches(std::span<const int64_t> lengths, const BatchLimits& limits,
                        FunctionRef<void(std::span<const size_t> members)> run) {
  // Long ones first: no thread is left with them.
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  const std::vector<Range> batches = cut(order, lengths, limits);
  check_stop();  // here too: the pool may leave no batch to this thread
  const auto run_one = [&](int64_t i) {
    check_stop();
    const auto [begin, end] = batches[static_cast<size_t>(i)];
    run(std::span<const size_t>(order).subspan(begin, end - begin));
  };
  if (batches.size() == 1)
    run_one(0);
  else
    parallel_chunks(static_cast<int64_t>(batches.size()), run_one);
}

}  // namespace fovea
