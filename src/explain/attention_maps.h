// From a record of attention to single matrices: a head, the average of heads, rollout; over tokens or words;
// and from a matrix to alignment pairs and heat maps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/attention_record.h"
#include "explain/heatmap.h"

namespace fovea {

WeightMatrix head_average(const AttentionLayer& layer);

// Attention rollout (Abnar & Zuidema 2020): what reaches a row through all layers, a residual connection
// counting as much as the attention beside it. encoder and decoder: the product of (A + 1) / 2 over the
// layers, A the average of heads. cross, where the paper has nothing, follows the same rule through the whole
// network: what comes from the source through any layer of either stack, as a share. Rows sum to 1. Throws
// Error when the record has no such layers.
WeightMatrix rollout(const AttentionRecord& record, AttentionKind kind);
// Whether the record's layers stand on each other, so that rollout() has a meaning.
bool has_rollout(const AttentionRecord& record, AttentionKind kind);

// Tokens joined to words: weights are summed over the tokens looked at and averaged over those that look, so
// that rows sum to what they summed to.
WeightMatrix merge_words(const WeightMatrix& weights, const TokenLine& rows, const TokenLine& columns);

// One matrix of a record.
struct AttentionChoice {
  static constexpr int64_t kRollout = -1;  // a layer
  static constexpr int64_t kAverage = -1;  // a head
  AttentionKind kind = AttentionKind::cross;
  int64_t layer = 0, head = kAverage;  // counted from 0, as in the names of a model's parameters
};
// Throws Error naming the layers or heads there are.
WeightMatrix choose(const AttentionRecord& record, const AttentionChoice& choice);

// The layer whose average of heads is the record's alignment: the last but one of several, the only one
// otherwise. In trained Transformers the last layer prepares the next word rather than looking at this one
// (Garg et al. 2019).
int64_t alignment_layer(const AttentionRecord& record);

// A source word and a target word that belong together, both counted from 0.
struct AlignedPair {
  int64_t source = 0, target = 0;
  friend bool operator==(const AlignedPair&, const AlignedPair&) = default;
};
// weights: [target, source], of sentences whose last place is the end, which never takes part. threshold 0:
// for each target its strongest source, the first of equals; otherwise all pairs of at least this weight. In
// the order of targets.
std::vector<AlignedPair> aligned_pairs(const WeightMatrix& weights, double threshold = 0);
// "0-0 1-2": Pharaoh's format.
std::string pharaoh(const std::vector<AlignedPair>& pairs);

// The matrix as a map; `words`: over words instead of tokens. Drawn darkest is its largest weight. Without a
// title where the model has no other map of the kind.
HeatMap heat_map(const AttentionRecord& record, const AttentionChoice& choice, bool words);
// "cross, layer 2, head 1", "encoder, rollout"
std::string title_of(const AttentionChoice& choice);

// A row of panels for each layer of the kind, heads and then their average, and rollout below; labels stand
// at the outer edges. layer and head narrow it, down to a single map.
struct FigureChoice {
  AttentionKind kind = AttentionKind::cross;
  std::optional<int64_t> layer = {}, head = {};
};
Figure attention_figure(const AttentionRecord& record, const FigureChoice& choice, bool words);

}  // namespace fovea
