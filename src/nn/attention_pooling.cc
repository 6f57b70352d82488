#include "nn/attention_pooling.h"

#include <cmath>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/runs.h"

namespace fovea::nn {
namespace {

// One query for each sequence, which sees all of it.
KeyRuns one_query_each(std::span<const int64_t> lengths) {
  return KeyRuns::sentences(std::vector<int64_t>(lengths.size(), 1), lengths);
}

// The same row for every sequence. row: [d] -> [sequences, d].
Var repeated(const Var& row, size_t sequences) {
  return gather(reshape(row, {1, -1}), std::vector<int32_t>(sequences, 0));
}

Var pooled(const Var& query, const Var& keys, const Var& states, std::span<const int64_t> lengths,
           const Score& score, const RunScore& run, std::string_view name) {
  const KeyRuns runs = one_query_each(lengths);
  const SeenRuns seen = attend_runs(query, keys, states, runs, run, {}, attention_observer() != nullptr);
  show_runs(name, score, runs, seen.weights);
  return seen.out;
}

}  // namespace

AttentionPooling::AttentionPooling(const AttentionPoolingOptions& options, Rng& rng)
    : score_(score_named(options.score)) {
  require(score_.kind != ScoreKind::bilinear && score_.kind != ScoreKind::concat, "pooling: score '",
          options.score, "', wanted additive, dot, scaled_dot or cosine: the query is learned as it is");
  const bool additive = score_.kind == ScoreKind::additive;
  const int64_t width = additive && options.hidden > 0 ? options.hidden : options.width;
  const float bound = 1 / std::sqrt(static_cast<float>(width));
  query_ = add_parameter("query", uniform({width}, -bound, bound, rng));
  if (!additive) return;
  weight_ = add_parameter("weight", xavier_uniform({width, options.width}, rng));
  bias_ = add_parameter("bias", Tensor::zeros({width}));
}

Var AttentionPooling::operator()(const Var& states, std::span<const int64_t> lengths,
                                 std::string_view name) const {
  const RunScore run = run_score(score_, query_.size(0), query_);
  if (score_.kind == ScoreKind::additive)
    return pooled(repeated(bias_, lengths.size()), linear(states, weight_), states, lengths, score_, run,
                  name);
  const Var keys = score_.kind == ScoreKind::cosine ? unit_rows(states) : states;
  return pooled(repeated(query_, lengths.size()), keys, states, lengths, score_, run, name);
}

Var mean_pooling(const Var& states, std::span<const int64_t> lengths, std::string_view name) {
  const Var nothing(Tensor::zeros({static_cast<int64_t>(lengths.size()), states.size(1)}));
  return pooled(nothing, states.detach(), states, lengths, dot(), {}, name);
}

}  // namespace fovea::nn
