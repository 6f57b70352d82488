#include "infer/decode_all.h"

#include "base/error.h"

namespace fovea {

std::vector<std::vector<Hypothesis>> decode_batches(
    std::span<const int64_t> lengths, std::span<const int32_t> limits, const BeamOptions& options,
    const BatchLimits& batches,
    FunctionRef<std::unique_ptr<StepDecoder>(std::span<const size_t> members)> start) {
  FOVEA_ASSERT(lengths.size() == limits.size());
  std::vector<std::vector<Hypothesis>> results(lengths.size());
  for_length_batches(lengths, batches, [&](std::span<const size_t> members) {
    std::vector<int32_t> longest;
    for (const size_t i : members) longest.push_back(limits[i]);
    const std::unique_ptr<StepDecoder> decoder = start(members);
    auto found = beam_search(*decoder, longest, options);
    for (size_t j = 0; j < members.size(); ++j) results[members[j]] = std::move(found[j]);
  });
  return results;
}

std::vector<std::vector<Hypothesis>> decode_all(const Inference& inference,
                                                std::span<const std::vector<int32_t>> sources,
                                                std::span<const int32_t> limits, const BeamOptions& options,
                                                const BatchLimits& batch_limits) {
  // Sentences of similar length end at about the same step.
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& source : sources) lengths.push_back(static_cast<int64_t>(source.size()));
  return decode_batches(lengths, limits, options, batch_limits, [&](std::span<const size_t> members) {
    std::vector<int32_t> tokens, sizes;
    for (const size_t i : members) {
      tokens.insert(tokens.end(), sources[i].begin(), sources[i].end());
      sizes.push_back(static_cast<int32_t>(sources[i].size()));
    }
    return inference.start(models::Sentences(tokens, sizes));
  });
}

}  // namespace fovea
