// Multi-head attention: projections, rotary positions, global rows, key-value caches, and attention over them.
#include "nn/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/attention/step_attention.h"
#include "nn/choices.h"
#include "nn/init.h"

namespace fovea::nn {
namespace {

// The spec of one call: the layer's own, its pattern narrowed. A dropout that the spec names itself, as in
// soft(0.3), goes before the layer's.
AttentionSpec spec_of_call(const AttentionSpec& own, const Pattern& pattern, float dropout) {
  AttentionSpec spec = own;
  if (pattern != full()) spec.pattern = own.pattern == full() ? pattern : own.pattern & pattern;
  if (spec.selection.kind == SelectionKind::soft && spec.selection.dropout == 0)
    spec.selection.dropout = dropout;
  return spec;
}

// Whether a step with a cache computes what the spec says: scaled_dot or dot / full / soft.
bool steps(const AttentionSpec& spec) {
  const Score& score = spec.score;
  return (score.kind == ScoreKind::dot || score.kind == ScoreKind::scaled_dot) &&
         spec.selection.kind == SelectionKind::soft && spec.terms == Terms{} && spec.pattern == full();
}

constexpr const char* kNoRows = "attention: got a cache without rows, wanted the keys that each row sees";

// [B, N, heads * D] -> [B, heads, N, D], a view.
Var split_heads(const Var& x, int64_t heads) {
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

// [B, heads, N, D] -> [B, N, heads * D]; free where attention() made x.
Var join_heads(const Var& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

// Rows [begin, begin + rows) of a matrix and its bias.
Projection::Part part_of(const Var& weight, const Var& bias, int64_t begin, int64_t rows) {
  return {slice(weight, 0, begin, rows), bias.defined() ? slice(bias, 0, begin, rows) : Var()};
}

// Keys and values that were projected together, [B, N, 2 heads D].
MultiHeadAttention::KeysValues split_keys_values(const Var& both, int64_t heads) {
  const int64_t counts[] = {heads, heads};
  const std::vector<Var> parts = split(split_heads(both, 2 * heads), 1, counts);
  return {parts[0], parts[1]};
}

// The kernel for few queries on many keys sums in another order than the others: rows that see nothing keep it away,
// so that a text's result does not depend on how many global rows the texts beside it have.
GlobalRows with_enough_rows(GlobalRows global) {
  constexpr size_t kEnough = 17;
  if (global.rows.size() >= kEnough) return global;
  global.counts.push_back(static_cast<int64_t>(kEnough - global.rows.size()));
  global.lengths.push_back(0);
  global.rows.resize(kEnough, 0);
  return global;
}

// Shows an observer the pass over all rows and the pass over the global ones as one call: a global row's
// weights are those of its own pass.
class JoinedPasses : public AttentionObserver {
 public:
  JoinedPasses(AttentionObserver& outer, const GlobalRows& global) : outer_(outer), global_(global) {}

  Capture capture(const Call& call) override {
    if (!requested_) {
      requested_ = true;
      return capture_ = outer_.capture(call);
    }
    Capture own{capture_.heads, {}};
    for (size_t i = 0, next = 0; i < global_.rows.size(); ++i) {
      while (next < capture_.rows.size() && capture_.rows[next] < global_.rows[i]) ++next;
      if (next == capture_.rows.size() || capture_.rows[next] != global_.rows[i]) continue;
      own.rows.push_back(static_cast<int32_t>(i));
      places_.push_back(static_cast<int64_t>(next));
    }
    return own;
  }

  void observe(const Call& call, const Capture& own, const Captured& captured) override {
    if (!seen_.weights.defined()) {
      seen_ = {captured.weights, captured.lse.clone()};
      return;
    }
    // weights: [1, heads, rows, N]
    const int64_t heads = captured.weights.size(1), keys = call.keys, rows = seen_.weights.size(2);
    for (int64_t h = 0; h < heads; ++h)
      for (size_t i = 0; i < places_.size(); ++i) {
        const float* const from = captured.weights.data() +
                                  (h * static_cast<int64_t>(places_.size()) + static_cast<int64_t>(i)) * keys;
        std::copy_n(from, keys, seen_.weights.data() + (h * rows + places_[i]) * keys);
      }
    for (int64_t h = 0; h < call.heads; ++h)
      for (const int32_t i : own.rows)
        seen_.lse.data()[h * seen_.lse.size(2) + global_.rows[static_cast<size_t>(i)]] =
            captured.lse.data()[h * call.queries + i];
  }

  // call: as the pass over all rows was.
  void show(const Call& call) {
    if (seen_.weights.defined()) outer_.observe(call, capture_, seen_);
  }

 private:
  AttentionObserver& outer_;
  const GlobalRows& global_;
  bool requested_ = false;
  Capture capture_;
  std::vector<int64_t> places_;  // of the global rows among the requested rows
  Captured seen_;
};

}  // namespace

MultiHeadAttention::MultiHeadAttention(const MultiHeadOptions& options, Rng& rng)
    : options_(options),
      out_proj_(options.width, options.width, rng, options.bias),
      query_([this] { return rows_of(0, options_.heads); }),
      keys_values_([this] { return rows_of(options_.heads, 2 * options_.kv_heads); }),
      score_query_([this] { return std::vector{score_query_part()}; }),
      score_keys_([this] { return std::vector{score_keys_part()}; }),
      global_query_([this] { return global_rows_of(0, options_.heads); }),
      global_keys_values_([this] { return global_rows_of(options_.heads, 2 * options_.heads); }) {
  if (options_.kv_heads == 0) options_.kv_heads = options_.heads;
  const int64_t width = options_.width, heads = options_.heads, kv_heads = options_.kv_heads;
  const AttentionSpec& spec = options_.spec;
  const Var& relative = options_.relative;
  require(heads > 0 && width % heads == 0, "attention: ", heads, " heads do not divide the width ", width);
  require(kv_heads > 0 && heads % kv_heads == 0, "attention: ", kv_heads, " key heads do not divide ", heads,
          " heads");
  require(
      spec.score.kind != ScoreKind::location,
      "attention: the score location has a weight for each place, so that it needs a longest text; wanted dot, "
      "scaled_dot, cosine, bilinear, additive or concat");
  require(!spec.terms.bias && spec.terms.gaussian == 0,
          "attention: a layer of several heads takes alibi, relative, soft_cap and sink; call attention() "
          "for other terms");
  head_width_ = width / heads;
  in_proj_weight_ =
      add_parameter("in_proj_weight", xavier_uniform({(heads + 2 * kv_heads) * head_width_, width}, rng));
  if (options_.bias && options_.qkv_bias)
    in_proj_bias_ = add_parameter("in_proj_bias", constant({(heads + 2 * kv_heads) * head_width_}, 0));
  if (options_.bias) out_proj_.bias.value().fill(0);
  if (options_.global_projections) {
    require(kv_heads == heads, "attention: global projections need as many key heads as query heads, got ",
            kv_heads, " and ", heads);
    global_weight_ = add_parameter("global_in_proj_weight", xavier_uniform({3 * width, width}, rng));
    if (in_proj_bias_.defined())
      global_bias_ = add_parameter("global_in_proj_bias", constant({3 * width}, 0));
    add_projection(global_query_);
    add_projection(global_keys_values_);
  }
  add_score_parameters(rng);
  parameters_.relative = relative;
  if (spec.terms.relative.buckets != 0 && !relative.defined())
    parameters_.relative =
        add_parameter("relative", normal({spec.terms.relative.buckets, heads}, 0, 0.02f, rng));
  if (spec.terms.sink) parameters_.sink = add_parameter("sink", constant({heads}, 0));
  add_child("out_proj", out_proj_);
  add_projection(query_);
  add_projection(keys_values_);
  for (const Var& matrix : {in_proj_weight_, global_weight_, out_proj_.weight}) add_prepared_matrix(matrix);
}

void MultiHeadAttention::add_score_parameters(Rng& rng) {
  const int64_t d = head_width_;
  const float bound = 1 / std::sqrt(static_cast<float>(d));
  const auto matrix = [&](const char* name, int64_t columns) {
    return add_parameter(name, xavier_uniform({d, columns}, rng));
  };
  switch (options_.spec.score.kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
    case ScoreKind::cosine:
    case ScoreKind::location:
      return;
    case ScoreKind::bilinear:
      parameters_.W = matrix("score.W", d);
      add_projection(score_keys_);
      return;
    case ScoreKind::additive:
      parameters_.W = matrix("score.W", d);
      parameters_.U = matrix("score.U", d);
      break;
    case ScoreKind::concat:
      parameters_.W = matrix("score.W", 2 * d);
      break;
  }
  parameters_.b = add_parameter("score.b", constant({d}, 0));
  parameters_.v = add_parameter("score.v", uniform({d}, -bound, bound, rng));
  add_projection(score_query_);
  add_projection(score_keys_);
}

Projection::Part MultiHeadAttention::score_query_part() const {
  const bool concat = options_.spec.score.kind == ScoreKind::concat;
  return {concat ? slice(parameters_.W, 1, head_width_, head_width_) : parameters_.U, parameters_.b};
}

Projection::Part MultiHeadAttention::score_keys_part() const {
  const bool concat = options_.spec.score.kind == ScoreKind::concat;
  return {concat ? slice(parameters_.W, 1, 0, head_width_) : parameters_.W};
}

std::vector<Projection::Part> MultiHeadAttention::rows_of(int64_t first_head, int64_t count) const {
  return {part_of(in_proj_weight_, in_proj_bias_, first_head * head_width_, count * head_width_)};
}

std::vector<Projection::Part> MultiHeadAttention::global_rows_of(int64_t first_head, int64_t count) const {
  return {part_of(global_weight_, global_bias_, first_head * head_width_, count * head_width_)};
}

void MultiHeadAttention::check_input(const Var& x) const {
  require(x.rank() == 3 && x.size(2) == options_.width, "attention: got input of shape ", x.shape(),
          ", wanted [batch, tokens, ", options_.width, "]");
}

Var MultiHeadAttention::project(const Var& x, int64_t first_head, int64_t count) const {
  check_input(x);
  const Projection::Part part = rows_of(first_head, count)[0];
  return split_heads(linear(x, part.weight, part.bias), count);
}

Var MultiHeadAttention::project_query(const Var& x) const {
  check_input(x);
  return split_heads(query_(x), options_.heads);
}

MultiHeadAttention::KeysValues MultiHeadAttention::project_keys_values(const Var& key,
                                                                       const Var& value) const {
  const int64_t heads = options_.heads, kv_heads = options_.kv_heads;
  if (!key.is_same(value)) return {project(key, heads, kv_heads), project(value, heads + kv_heads, kv_heads)};
  check_input(key);
  return split_keys_values(keys_values_(key), kv_heads);
}

Var MultiHeadAttention::attended(const Var& q, const KeysValues& source, Context& context,
                                 const Call& call) const {
  AttentionSpec spec = spec_of_call(options_.spec, call.pattern, context.rate(options_.dropout));
  AttentionParameters parameters = parameters_;
  if (call.key_bias.defined()) {
    spec.terms.bias = true;
    parameters.bias = call.key_bias;
  }
  // The score's own matrices are prepared layers like the others, so that a row's bits do not depend on its batch.
  const bool projected = parameters_.W.defined(), additive = parameters_.v.defined();
  parameters.W = parameters.U = parameters.b = {};
  const bool random = context.training && draws(spec.selection);
  const AttentionResult result =
      attend(additive ? score_query_(q) : q, projected ? score_keys_(source.k) : source.k, source.v, spec,
             {.parameters = parameters,
              .training = context.training,
              .seed = random ? context.next_seed() : 0,
              .projected = projected,
              .name = call.name,
              .site = call.site});
  if (result.log_probability.defined()) keep_choices(context, result.log_probability);
  return join_heads(result.output);
}

Var MultiHeadAttention::attend_to(const Var& q, const KeysValues& source, Context& context,
                                  const Call& call) const {
  return out_proj_(attended(q, source, context, call));
}

// Two passes: all rows through the pattern, then the global ones over all of their text, which replace theirs.
Var MultiHeadAttention::attend_with_global(const Var& x, const Var& q, const KeysValues& source,
                                           Context& context, const Call& call) const {
  const GlobalRows& global = *call.global;
  const int64_t tokens = x.size(1), width = options_.width;
  const auto count = static_cast<int64_t>(global.rows.size());
  require(x.size(0) == 1 && !options_.rotary && options_.spec.selection.kind != SelectionKind::hard,
          "attention: global rows need a packed batch, and neither rotary positions nor hard choices");
  std::optional<JoinedPasses> joined;
  std::optional<ObserveAttention> observe;
  AttentionObserver* const observer = attention_observer();
  if (observer != nullptr) observe.emplace(joined.emplace(*observer, global));
  const Var narrow = attended(q, source, context, call);
  const GlobalRows requested = with_enough_rows(global);
  const auto queries = static_cast<int64_t>(requested.rows.size());
  const Var rows = reshape(gather(reshape(x, {tokens, width}), requested.rows), {1, queries, width});
  Call own = call;
  own.pattern = documents(requested.counts, requested.lengths);
  own.key_bias = {};
  const Var wide = options_.global_projections
                       ? attended(split_heads(global_query_(rows), options_.heads),
                                  split_keys_values(global_keys_values_(x), options_.heads), context, own)
                       : attended(project_query(rows), source, context, own);
  if (joined) {
    observe.reset();
    const AttentionSpec spec = spec_of_call(options_.spec, call.pattern, context.rate(options_.dropout));
    joined->show({call.name, spec, 1, options_.heads, tokens, tokens, call.site});
  }
  std::vector<int32_t> places(static_cast<size_t>(tokens));
  std::iota(places.begin(), places.end(), 0);
  for (int64_t i = 0; i < count; ++i)
    places[static_cast<size_t>(global.rows[static_cast<size_t>(i)])] = static_cast<int32_t>(tokens + i);
  const Var all[] = {reshape(narrow, {tokens, width}), slice(reshape(wide, {queries, width}), 0, 0, count)};
  return out_proj_(reshape(gather(concat(all, 0), places), {1, tokens, width}));
}

Var MultiHeadAttention::operator()(const Var& x, Context& context, const Call& call) const {
  check_input(x);
  if (call.cache != nullptr) {
    require(call.rows != nullptr, kNoRows);
    fill(*call.cache, x);
    return attend_cached(x, call);
  }
  const int64_t heads = options_.heads, kv_heads = options_.kv_heads;
  Var q;
  KeysValues source;
  if (query_.in_use() != nullptr) {
    q = project_query(x);
    source = project_keys_values(x, x);
  } else {  // one product for all three
    const int64_t counts[] = {heads, kv_heads, kv_heads};
    const std::vector<Var> qkv =
        split(split_heads(linear(x, in_proj_weight_, in_proj_bias_), heads + 2 * kv_heads), 1, counts);
    q = qkv[0];
    source = {qkv[1], qkv[2]};
  }
  if (options_.rotary) {
    q = rotary(q, call.positions, *options_.rotary);
    source.k = rotary(source.k, call.positions, *options_.rotary);
  }
  if (call.global != nullptr && !call.global->rows.empty())
    return attend_with_global(x, q, source, context, call);
  return attend_to(q, source, context, call);
}

Var MultiHeadAttention::cross(const Var& x, const Var& source, Context& context, const Call& call) const {
  return cross(x, source, source, context, call);
}

Var MultiHeadAttention::cross(const Var& query, const Var& key, const Var& value, Context& context,
                              const Call& call) const {
  if (call.cache != nullptr) return attend_cached(query, call);
  return attend_to(project_query(query), project_keys_values(key, value), context, call);
}

void MultiHeadAttention::fill(KeyValueCache& cache, const Var& source) const {
  check_input(source);
  require(steps(options_.spec) && !options_.rotary, "attention: got ", options_.spec,
          " for a decoder's step, wanted scaled_dot / full / soft");
  keys_values_.write(source.value().contiguous(),
                     cache.append(source.size(0) * source.size(1), 2 * options_.kv_heads * head_width_));
}

Var MultiHeadAttention::attend_cached(const Var& x, const Call& call) const {
  require(call.rows != nullptr, kNoRows);
  require(call.cache->slot_count() >= call.rows->slot_count(), "attention: got a cache of ",
          call.cache->slot_count(), " keys for rows that see ", call.rows->slot_count(),
          ", wanted one that was filled");
  const int64_t rows = call.rows->rows(), width = options_.width, keys = options_.kv_heads * head_width_;
  require(x.size(0) * x.size(1) == rows, "attention: got ", x.shape(), " for a step of ", rows, " rows");
  const Tensor q(x.shape()), out(x.shape());
  query_.write(x.value().contiguous(), q.data());
  const Score& score = options_.spec.score;
  kernels::attention_step({.rows = rows,
                           .heads = options_.heads,
                           .kv_heads = options_.kv_heads,
                           .d = head_width_,
                           .scale = score.kind == ScoreKind::dot ? 1
                                    : score.number != 0
                                        ? 1 / score.number
                                        : static_cast<float>(1 / std::sqrt(static_cast<double>(head_width_))),
                           .q = q.data(),
                           .q_row = width,
                           .k = call.cache->data(),
                           .v = call.cache->data() + keys,
                           .kv_row = 2 * keys,
                           .keys = call.rows->slots(),
                           .first = call.rows->first(),
                           .count = call.rows->count(),
                           .out = out.data(),
                           .out_row = width});
  return out_proj_(Var(out));
}

}  // namespace fovea::nn
