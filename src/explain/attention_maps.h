// Chooses one matrix of an attention record (a head, the average of heads, or rollout; over tokens or words)
// and turns it into alignment pairs or heat maps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "explain/attention_record.h"
#include "explain/heatmap.h"

namespace fovea {

WeightMatrix head_average(const AttentionLayer& layer);

// Attention rollout (Abnar & Zuidema 2020): how much of each position reaches a row through all layers, where
// attention and the residual connection beside it count half each. encoder and decoder: the product of
// (A + 1) / 2 over the layers, A being the average of heads. The paper has no rule for cross; here the same
// rule is applied through both stacks, normalised over the source. Rows sum to 1. Throws Error if the record
// has no such layers.
WeightMatrix rollout(const AttentionRecord& record, AttentionKind kind);

// One row of the rollout of an encoder or a decoder, followed from the last layer to the first: it needs the weights of
// one layer at a time, and of that layer only the rows that the row was reached from so far.
class RolloutRow {
 public:
  // size: number of tokens.
  RolloutRow(int64_t size, int64_t row);
  // Rows of the next layer (the last one at first) whose weights are needed, in ascending order.
  std::vector<int32_t> rows() const;
  // Weights of some of these rows: [heads, rows, size]. Each row once.
  void add(std::span<const int32_t> rows, std::span<const float> weights);
  // To be called when all rows of a layer were added.
  void end_layer();
  // How much of each token reaches the row. The sum is 1.
  std::vector<float> shares() const;

 private:
  std::vector<double> shares_, gathered_;
};
// Row `row` of rollout(record, kind); kind: encoder or decoder.
std::vector<float> rollout_row(const AttentionRecord& record, AttentionKind kind, int64_t row);

// Whether the layers of this kind form a stack, so that rollout() is defined.
bool has_rollout(const AttentionRecord& record, AttentionKind kind);

// Merges tokens into words: weights are summed over the tokens of a column word and averaged over the tokens
// of a row word, so that the sum of a row does not change.
WeightMatrix merge_words(const WeightMatrix& weights, const TokenLine& rows, const TokenLine& columns);

// One matrix of a record.
struct AttentionChoice {
  static constexpr int64_t kRollout = -1;  // a layer
  static constexpr int64_t kAverage = -1;  // a head
  AttentionKind kind = AttentionKind::cross;
  int64_t layer = 0, head = kAverage;  // counted from 0, as in the names of a model's parameters
};
// Throws Error naming the layers or heads that exist.
WeightMatrix choose(const AttentionRecord& record, const AttentionChoice& choice);

// The layer whose average of heads is used as the alignment: the last but one, or the only one. In trained
// Transformers the last layer prepares the next word instead (Garg et al. 2019).
int64_t alignment_layer(const AttentionRecord& record);

// A source word and a target word that are aligned, both counted from 0.
struct AlignedPair {
  int64_t source = 0, target = 0;
  friend bool operator==(const AlignedPair&, const AlignedPair&) = default;
};
// weights: [target, source], both sentences ending with </s>, which is left out. threshold 0: for each target
// word the source word of largest weight (the first of equals); otherwise all pairs of at least this weight.
// In the order of target words.
std::vector<AlignedPair> aligned_pairs(const WeightMatrix& weights, double threshold = 0);
// "0-0 1-2": Pharaoh's format.
std::string pharaoh(const std::vector<AlignedPair>& pairs);

// The matrix as a heat map, over words or over tokens; the darkest colour is the weight of largest size. It has no
// title if it is the model's only map of this kind.
HeatMap heat_map(const AttentionRecord& record, const AttentionChoice& choice, bool words);
// "cross, layer 2, head 1", "encoder, rollout"
std::string title_of(const AttentionChoice& choice);

// A row of panels for each layer: its heads and their average, and rollout below. Labels are drawn at the
// outer edges only. `layer` and `head` restrict it, down to a single map.
struct FigureChoice {
  AttentionKind kind = AttentionKind::cross;
  std::optional<int64_t> layer = {}, head = {};
};
Figure attention_figure(const AttentionRecord& record, const FigureChoice& choice, bool words);

}  // namespace fovea
