// Which layer and head of a translator's attention shows best which tokens belong together: measured against
// an alignment that is forced onto known translations by counting alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/batches.h"
#include "explain/attention_maps.h"
#include "tasks/translator.h"

namespace fovea::tasks {

// links[j]: the source token that target token j belongs to, counted from 0; -1: none is certain.
using Links = std::vector<int32_t>;

// Links of every pair, without the network: IBM Model 1 (Brown et al. 1993) with a prior for the diagonal
// (Dyer et al. 2013), five rounds of expectation maximisation over the pairs, once in either direction; a
// link that both directions agree on is certain.
std::vector<Links> forced_alignment(const data::ParallelIds& pairs);

// Of the certain links, those at which the weights of `choice` are largest: {agreeing, all}.
struct Agreement {
  int64_t agreeing = 0, links = 0;
  double share() const { return links > 0 ? static_cast<double>(agreeing) / static_cast<double>(links) : 0; }
};
// weights: [target tokens and the end, source tokens and the end].
Agreement agreement(const WeightMatrix& weights, std::span<const int32_t> links);

// The layer and head (or average of a layer's heads) whose weights agree best with the forced alignment of
// `valid`, which is counted over `train` too. Reads at most a few hundred pairs with the network. Empty where
// there is nothing to choose: one map, or no certain link.
std::optional<AlignmentChoice> choose_alignment(const LoadedTranslator& model, const data::ParallelIds& train,
                                                const data::ParallelIds& valid);

}  // namespace fovea::tasks
