// Attention of a recurrent decoder: its projections, the window of keys of each step, and predicted positions.
#include "nn/decoder_attention.h"

#include <algorithm>
#include <cmath>

#include "attention/attention.h"
#include "attention/compile.h"
#include "attention/kernel_call.h"
#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/positions.h"

namespace fovea::nn {
namespace {

void check_alignment(const AttentionSpec& spec) {
  check(spec);
  const std::string text = to_string(spec);
  require(!spec.terms.bias, "attention: got '", text,
          "'; a bias is an array for one call; wanted alibi, relative, soft_cap, sink or gaussian");
  // Sentences differ in length: the pattern must have a meaning in each of them, for a decoder of one head.
  try {
    compile(within({1}, spec.pattern), {.queries = 1, .keys = 1});
  } catch (const Error&) {
    fail(
        "attention: got '", text,
        "'; the pattern of a recurrent decoder has one head and counts positions alone, as full, causal, window, "
        "strided, global and random_blocks do");
  }
  const patterns::Window* const window = run_window(spec.pattern);
  require(
      spec.terms.gaussian == 0 || (window != nullptr && window->left == window->right && window->left >= 1),
      "attention: got '", text,
      "'; with gaussian(sigma) the pattern is window(n,n), n keys on either side of the predicted place");
  require(
      spec.selection.kind != SelectionKind::argmax,
      "attention: selection argmax: no gradient reaches queries and keys through it; choose hard or gumbel(1), "
      "which take the largest score at use");
}

// What runs of keys and a predicted place cannot say of a spec, without its parameters.
std::optional<PlaceTerms> place_terms_of(const AttentionSpec& spec) {
  if (is_runs(spec)) return std::nullopt;
  PlaceTerms rest{.terms = spec.terms};
  rest.terms.gaussian = 0;
  if (run_window(spec.pattern) == nullptr) rest.pattern = spec.pattern;
  return rest;
}

bool by_location(const DecoderAttentionOptions& options) {
  return options.spec.score.kind == ScoreKind::location;
}

}  // namespace

AttentionSpec alignment_spec(const AlignmentNames& names) {
  AttentionSpec spec{.score = names.score == "general" ? bilinear() : score_named(names.score),
                     .selection = parse_selection(names.selection)};
  if (names.locality == "global") return spec;
  require(names.locality == "local_m" || names.locality == "local_p", "attention: locality '", names.locality,
          "', wanted global, local_m or local_p");
  require(names.window >= 1, "attention: a window of ", names.window, " keys, wanted at least 1");
  spec.pattern = fovea::window(names.window, names.window);
  if (names.locality == "local_p") spec.terms.gaussian = static_cast<float>(names.window) / 2;
  return spec;
}

AttentionSpec alignment_spec(const std::string& text, const AlignmentNames& names,
                             const AlignmentNames& standard) {
  if (text.empty()) return alignment_spec(names);
  require(names == standard, "attention: got '", text,
          "' beside a score, locality, window or selection; write them into the spec");
  return parse_spec(text);
}

DecoderAttention::DecoderAttention(const DecoderAttentionOptions& options, Rng& rng) : options_(options) {
  check_alignment(options.spec);
  const int64_t dq = options.query_width, hidden = options_.hidden = options.hidden > 0 ? options.hidden : dq;
  add_score_parameters(rng);
  if (predicts()) {
    const float bound = 1 / std::sqrt(static_cast<float>(hidden));
    position_W_ = add_parameter("position.W", xavier_uniform({hidden, dq}, rng));
    position_v_ = add_parameter("position.v", uniform({hidden}, -bound, bound, rng));
  }
  place_terms_ = place_terms_of(options.spec);
  if (const int64_t buckets = options.spec.terms.relative.buckets; buckets != 0)
    place_terms_->relative = add_parameter("relative", normal({buckets, 1}, 0, 0.02f, rng));
  if (options.spec.terms.sink) place_terms_->sink = add_parameter("sink", constant({1}, 0));
}

// Without default, here and below: the compiler reports a score that was added to the enum alone.
void DecoderAttention::add_score_parameters(Rng& rng) {
  const int64_t dq = options_.query_width, dk = options_.key_width, hidden = options_.hidden;
  const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
    return add_parameter(name, xavier_uniform({rows, columns}, rng));
  };
  switch (options_.spec.score.kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
    case ScoreKind::cosine:
      if (dq != dk) key_ = matrix("key", dq, dk);
      return;
    case ScoreKind::location:
      require(options_.max_positions >= 1, "attention: max_positions ", options_.max_positions,
              ", wanted at least 1");
      table_ = matrix("table", options_.max_positions, dq);
      return;
    case ScoreKind::bilinear:
      W_ = matrix("W", dq, dk);
      return;
    case ScoreKind::additive:
      W_ = matrix("W", hidden, dk);
      U_ = matrix("U", hidden, dq);
      break;
    case ScoreKind::concat:
      W_ = matrix("W", hidden, dk + dq);
      break;
  }
  const float bound = 1 / std::sqrt(static_cast<float>(hidden));
  b_ = add_parameter("b", Tensor::zeros({hidden}));
  v_ = add_parameter("v", uniform({hidden}, -bound, bound, rng));
}

bool DecoderAttention::fused(const Context& context) const {
  return computed_by_runs(options_.spec, context.training);
}

Var DecoderAttention::key_weight() const {
  if (options_.spec.score.kind == ScoreKind::concat) return slice(W_, 1, 0, options_.key_width);
  return W_.defined() ? W_ : key_;
}

Var DecoderAttention::finished_keys(const Var& projected, std::span<const int64_t> lengths) const {
  switch (options_.spec.score.kind) {
    case ScoreKind::location: {
      std::vector<int32_t> places = packed_positions(lengths);
      for (int32_t& place : places) place = std::min(place, static_cast<int32_t>(options_.max_positions) - 1);
      return embedding(table_, places);
    }
    case ScoreKind::cosine:
      return unit_rows(projected);
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
    case ScoreKind::bilinear:
    case ScoreKind::additive:
    case ScoreKind::concat:
      break;
  }
  return projected;
}

Var DecoderAttention::keys(const Var& memory, std::span<const int64_t> lengths) const {
  const Var weight = key_weight();
  return finished_keys(weight.defined() ? linear(memory, weight) : memory, lengths);
}

Var DecoderAttention::query_weight() const {
  if (options_.spec.score.kind == ScoreKind::concat)
    return slice(W_, 1, options_.key_width, options_.query_width);
  return U_;
}

int64_t DecoderAttention::window() const {
  const patterns::Window* const window = run_window(options_.spec.pattern);
  return window != nullptr ? window->left : 0;
}

Var DecoderAttention::position_vector() const {
  if (!position_v_.defined()) return {};
  return position_v_ * (1 / std::sqrt(static_cast<float>(position_v_.size(0))));
}

Var DecoderAttention::query_bias() const {
  return b_;
}

RunScore DecoderAttention::score() const {
  return run_score(options_.spec.score, options_.query_width, v_);
}

KeyRun run_at(const DecoderAttentionOptions& options, int64_t step, int64_t keys) {
  int64_t first = 0, last = keys - 1;
  const patterns::Window* const window = run_window(options.spec.pattern);
  if (window != nullptr && options.spec.terms.gaussian == 0) {
    // After the source's end, the window stays at its last key.
    const int64_t place = std::min(step, keys - 1);
    first = std::max<int64_t>(0, place - window->left);
    last = std::min(keys - 1, place + window->right);
  }
  if (by_location(options)) last = std::min(last, options.max_positions - 1);
  return {static_cast<int32_t>(first), static_cast<int32_t>(std::max<int64_t>(0, last - first + 1))};
}

KeyRuns DecoderAttention::runs(std::span<const int64_t> queries, std::span<const int64_t> keys) const {
  KeyRuns runs = KeyRuns::sentences(queries, keys);
  for (size_t s = 0; s < queries.size(); ++s) {
    for (int64_t t = 0; t < queries[s]; ++t) {
      const auto i = static_cast<size_t>(runs.query_begin[s] + t);
      const KeyRun run = run_at(options_, t, keys[s]);
      runs.first[i] += run.first;
      runs.count[i] = run.count;
    }
  }
  runs.measure();
  return runs;
}

RunGaussian DecoderAttention::predict(const Var& states, KeyRuns& runs) const {
  std::vector<int32_t> sentences, tokens;
  for (size_t s = 0; s + 1 < runs.query_begin.size(); ++s)
    for (int64_t i = runs.query_begin[s]; i < runs.query_begin[s + 1]; ++i) {
      sentences.push_back(static_cast<int32_t>(s));
      tokens.push_back(static_cast<int32_t>(i));
    }
  RunGaussian gaussian = predict_step(states, sentences, tokens, runs);
  runs.measure();
  return gaussian;
}

RunGaussian DecoderAttention::predict_step(const Var& states, std::span<const int32_t> sentences,
                                           std::span<const int32_t> tokens, KeyRuns& runs) const {
  const auto rows = static_cast<int64_t>(tokens.size());
  const Tensor begins(Shape{rows}), sizes(Shape{rows});
  for (int64_t r = 0; r < rows; ++r) {
    const auto s = static_cast<size_t>(sentences[static_cast<size_t>(r)]);
    begins.data()[r] = static_cast<float>(runs.key_begin[s]);
    sizes.data()[r] = static_cast<float>(runs.key_begin[s + 1] - runs.key_begin[s]);
  }
  const Var hidden = tanh(linear(states, position_W_));
  const Var place =
      reshape(sigmoid(linear(hidden, reshape(position_vector(), {1, -1}))), {rows}) * Var(sizes);
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(tokens[static_cast<size_t>(r)]);
    const auto run = kernels::predicted_run(place.value().data()[r], window(), runs.count[i]);
    runs.first[i] += run.first;
    runs.count[i] = run.count;
  }
  return {place + Var(begins), sigma()};
}

Var DecoderAttention::operator()(const Var& states, const Var& keys, const Var& values, KeyRuns runs,
                                 std::string_view name) const {
  Context use;
  return (*this)(states, keys, values, std::move(runs), use, name);
}

Var DecoderAttention::operator()(const Var& states, const Var& keys, const Var& values, KeyRuns runs,
                                 Context& context, std::string_view name) const {
  const Var weight = query_weight();
  const Var query = weight.defined() ? linear(states, weight, b_) : states;
  const RunGaussian gaussian = predicts() ? predict(states, runs) : RunGaussian{};
  const bool shown = attention_observer() != nullptr;
  std::vector<QueryPlace> places;
  if (place_terms_)
    for (size_t s = 0; s + 1 < runs.query_begin.size(); ++s)
      for (int64_t i = runs.query_begin[s]; i < runs.query_begin[s + 1]; ++i)
        places.push_back(
            place_at(i - runs.query_begin[s], runs.key_begin[s], runs.key_begin[s + 1] - runs.key_begin[s]));
  const SeenRuns seen = fused(context) ? attend_runs(query, keys, values, runs, score(), gaussian, shown)
                                       : attend_runs_by(selection(),
                                                        {query, keys, values, runs.first, runs.count, score(),
                                                         gaussian, place_terms(), places},
                                                        context, shown);
  show(name, runs, seen.weights);
  return seen.out;
}

void DecoderAttention::show(std::string_view name, const KeyRuns& runs, const Tensor& weights) const {
  show_runs({name, {.kind = AttentionSite::Kind::alignment}}, options_.spec.score, runs, weights);
}

}  // namespace fovea::nn
