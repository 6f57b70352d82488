// Pooling by a learned query: the scores and selections that a query which is the same for all texts can have.
#include "nn/attention_pooling.h"

#include <cmath>

#include "attention/attention.h"
#include "attention/kernel_call.h"
#include "autograd/ops.h"
#include "nn/choices.h"
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

std::string_view name_of(PoolingLevel level) {
  return level == PoolingLevel::words ? "words" : "sentences";
}

AttentionSite site_of(PoolingLevel level) {
  return {.kind = AttentionSite::Kind::pooling, .layer = static_cast<int64_t>(level)};
}

Var pooled(const Var& query, const Var& keys, const Var& states, std::span<const int64_t> lengths,
           const Score& score, const RunScore& run, PoolingLevel level) {
  const KeyRuns runs = one_query_each(lengths);
  const SeenRuns seen = attend_runs(query, keys, states, runs, run, {}, attention_observer() != nullptr);
  show_runs({name_of(level), site_of(level)}, score, runs, seen.weights);
  return seen.out;
}

// What the learned query is compared with: the state itself unless said otherwise.
struct KeyForm {
  bool hidden = false;    // a hidden layer of it: tanh(weight h + bias)
  bool projects = false;  // weight h
  bool unit = false;      // h / |h|
};

// Without default: the compiler reports a score that was added to the enum alone. Throws Error on location.
KeyForm key_form(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
      return {};
    case ScoreKind::cosine:
      return {.unit = true};
    case ScoreKind::bilinear:
      return {.projects = true};
    case ScoreKind::additive:
    // With a query that is the same for all, concat computes what additive does: the query's part of the sum is the bias.
    case ScoreKind::concat:
      return {.hidden = true, .projects = true};
    case ScoreKind::location:
      break;
  }
  fail(
      "pooling: score 'location' weighs places whatever their states are; wanted additive, gated, dot, "
      "scaled_dot, cosine, bilinear or concat");
}

// [rows, features] as one batch of one head.
Var one_head(const Var& x) {
  return reshape(x, {1, 1, x.size(0), x.size(1)});
}

}  // namespace

AttentionPooling::AttentionPooling(const AttentionPoolingOptions& options, Rng& rng)
    : gated_(options.score == "gated"),
      score_(gated_ ? dot() : score_named(options.score)),
      selection_(trained_selection(options.selection, "pooling")),
      keys_([this] {
        if (!gated_) return std::vector<Projection::Part>{{weight_}};
        return std::vector<Projection::Part>{{weight_, bias_}, {gate_weight_, gate_bias_}};
      }) {
  const KeyForm form = key_form(score_.kind);
  const bool hidden = gated_ || form.hidden, projects = gated_ || form.projects;
  const int64_t width = hidden && options.hidden > 0 ? options.hidden : options.width;
  const float bound = 1 / std::sqrt(static_cast<float>(width));
  query_ = add_parameter("query", uniform({width}, -bound, bound, rng));
  if (!projects) return;
  weight_ = add_parameter("weight", xavier_uniform({width, options.width}, rng));
  if (hidden) bias_ = add_parameter("bias", constant({width}, 0));
  if (gated_) {
    gate_weight_ = add_parameter("gate_weight", xavier_uniform({width, options.width}, rng));
    gate_bias_ = add_parameter("gate_bias", constant({width}, 0));
  }
  add_projection(keys_);
}

bool AttentionPooling::is_additive() const {
  return key_form(score_.kind).hidden;
}

// What the query is compared with.
Var AttentionPooling::keys_of(const Var& states) const {
  if (gated_) {
    const Var both = keys_(states);
    const int64_t width = query_.size(0);
    return tanh(slice(both, 1, 0, width)) * sigmoid(slice(both, 1, width, width));
  }
  return weight_.defined() ? keys_(states) : states;
}

Var AttentionPooling::operator()(const Var& states, std::span<const int64_t> lengths, Context& context,
                                 PoolingLevel level) const {
  const AttentionSpec spec{.score = score_, .selection = selection_};
  return computed_by_runs(spec, context.training) ? pool_by_runs(states, lengths, level)
                                                  : pool(states, lengths, context, level);
}

Var AttentionPooling::pool_by_runs(const Var& states, std::span<const int64_t> lengths,
                                   PoolingLevel level) const {
  const RunScore run = run_score(score_, query_.size(0), query_);
  if (is_additive())
    return pooled(repeated(bias_, lengths.size()), keys_of(states), states, lengths, score_, run, level);
  const Var keys = key_form(score_.kind).unit ? unit_rows(states) : keys_of(states);
  return pooled(repeated(query_, lengths.size()), keys, states, lengths, score_, run, level);
}

// Any selection, by the general path.
Var AttentionPooling::pool(const Var& states, std::span<const int64_t> lengths, Context& context,
                           PoolingLevel level) const {
  const auto sequences = static_cast<int64_t>(lengths.size());
  const std::vector<int64_t> ones(lengths.size(), 1), tokens(lengths.begin(), lengths.end());
  const AttentionSpec spec{.score = score_, .pattern = documents(ones, tokens), .selection = selection_};
  AttentionRequest request{.training = context.training, .name = name_of(level), .site = site_of(level)};
  if (context.training && draws(selection_)) request.seed = context.next_seed();
  Var query;
  const Var keys = keys_of(states);
  request.projected = weight_.defined() && !gated_;
  if (is_additive()) {
    // The learned query is the vector of the score; U q + b is the bias for every sequence.
    const Var nothing(Tensor::zeros({weight_.size(0), 1}));
    query = linear(Var(Tensor::zeros({sequences, 1})), nothing, bias_);
    request.parameters.v = query_;
  } else {
    query = repeated(query_, lengths.size());
  }
  const AttentionResult result = attend(one_head(query), one_head(keys), one_head(states), spec, request);
  if (result.log_probability.defined()) keep_choices(context, result.log_probability);
  return reshape(result.output, {sequences, states.size(1)});
}

Var mean_pooling(const Var& states, std::span<const int64_t> lengths, PoolingLevel level) {
  const Var nothing(Tensor::zeros({static_cast<int64_t>(lengths.size()), states.size(1)}));
  return pooled(nothing, states.detach(), states, lengths, dot(), {}, level);
}

}  // namespace fovea::nn
