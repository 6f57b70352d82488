#include "infer/decode_all.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"

namespace fovea {
namespace {

struct Range {
  size_t begin, end;
};

// Below this many sentences a batch reads the weights more often than its rows are worth.
constexpr size_t kLeastShare = 4;

// Cuts of `order` that keep the limits; where there are fewer than threads, as many as there are threads.
std::vector<Range> cut(std::span<const size_t> order, std::span<const std::vector<int32_t>> sources,
                       const BatchLimits& limits) {
  std::vector<Range> batches;
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    auto tokens = static_cast<int64_t>(sources[order[begin]].size());
    for (end = begin + 1; end < order.size(); ++end) {
      tokens += static_cast<int64_t>(sources[order[end]].size());
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

std::vector<std::vector<Hypothesis>> decode_all(const Inference& inference,
                                                std::span<const std::vector<int32_t>> sources,
                                                std::span<const int32_t> limits, const BeamOptions& options,
                                                const BatchLimits& batch_limits) {
  FOVEA_ASSERT(sources.size() == limits.size());
  // Sentences of similar length end at about the same step. Long ones first: no thread is left with them.
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  const std::vector<Range> batches = cut(order, sources, batch_limits);
  std::vector<std::vector<Hypothesis>> results(sources.size());
  const auto decode = [&](int64_t i) {
    const auto [begin, end] = batches[static_cast<size_t>(i)];
    std::vector<int32_t> tokens, lengths, longest;
    for (size_t j = begin; j < end; ++j) {
      const std::vector<int32_t>& source = sources[order[j]];
      tokens.insert(tokens.end(), source.begin(), source.end());
      lengths.push_back(static_cast<int32_t>(source.size()));
      longest.push_back(limits[order[j]]);
    }
    const auto decoder = inference.start(models::Sentences(tokens, lengths));
    auto found = beam_search(*decoder, longest, options);
    for (size_t j = begin; j < end; ++j) results[order[j]] = std::move(found[j - begin]);
  };
  // One batch alone is not handed out: its own products may then use the threads.
  if (batches.size() == 1) {
    decode(0);
  } else {
    parallel_chunks(static_cast<int64_t>(batches.size()), decode);
  }
  return results;
}

}  // namespace fovea
