#include "nn/attention.h"

#include <cmath>

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

// [B, N, heads * D] -> [B, heads, N, D], a view.
Var split_heads(const Var& x, int64_t heads) {
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

// [B, heads, N, D] -> [B, N, heads * D]; free where attention() made x.
Var join_heads(const Var& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

// The rows `tokens` of x [B, N, E], run by run.
Var take_tokens(const Var& x, std::span<const int64_t> tokens) {
  std::vector<Var> runs;
  for (size_t begin = 0, end; begin < tokens.size(); begin = end) {
    end = begin + 1;
    while (end < tokens.size() && tokens[end] == tokens[end - 1] + 1) ++end;
    runs.push_back(slice(x, 1, tokens[begin], static_cast<int64_t>(end - begin)));
  }
  return concat(runs, 1);
}

// x [B, N, E] with the rows `tokens` replaced by those of `rows` [B, tokens, E].
Var put_tokens(const Var& x, const Var& rows, std::span<const int64_t> tokens) {
  std::vector<Var> runs;
  int64_t place = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] > place) runs.push_back(slice(x, 1, place, tokens[i] - place));
    runs.push_back(slice(rows, 1, static_cast<int64_t>(i), 1));
    place = tokens[i] + 1;
  }
  if (place < x.size(1)) runs.push_back(slice(x, 1, place, x.size(1) - place));
  return concat(runs, 1);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const MultiHeadOptions& options, Rng& rng)
    : options_(options),
      out_proj_(options.width, options.width, rng, options.bias),
      query_([this] { return rows_of(0, options_.heads); }),
      keys_values_([this] { return rows_of(options_.heads, 2 * options_.kv_heads); }) {
  if (options_.kv_heads == 0) options_.kv_heads = options_.heads;
  const auto& [width, heads, kv_heads, dropout, bias, spec, rotary, relative] = options_;
  require(heads > 0 && width % heads == 0, "attention: ", heads, " heads do not divide the width ", width);
  require(kv_heads > 0 && heads % kv_heads == 0, "attention: ", kv_heads, " key heads do not divide ", heads,
          " heads");
  require(spec.score.kind == ScoreKind::dot || spec.score.kind == ScoreKind::scaled_dot ||
              spec.score.kind == ScoreKind::cosine,
          "attention: several heads project by themselves; wanted a dot, scaled_dot or cosine score");
  require(!spec.terms.bias && spec.terms.gaussian == 0,
          "attention: a layer of several heads takes alibi, relative, soft_cap and sink; call attention() "
          "for other terms");
  head_width_ = width / heads;
  in_proj_weight_ =
      add_parameter("in_proj_weight", xavier_uniform({(heads + 2 * kv_heads) * head_width_, width}, rng));
  if (bias) {
    in_proj_bias_ = add_parameter("in_proj_bias", constant({(heads + 2 * kv_heads) * head_width_}, 0));
    out_proj_.bias.value().fill(0);
  }
  terms_.relative = relative;
  if (spec.terms.relative.buckets != 0 && !relative.defined())
    terms_.relative = add_parameter("relative", normal({spec.terms.relative.buckets, heads}, 0, 0.02f, rng));
  if (spec.terms.sink) terms_.sink = add_parameter("sink", constant({heads}, 0));
  add_child("out_proj", out_proj_);
  add_projection(query_);
  add_projection(keys_values_);
}

std::vector<Projection::Part> MultiHeadAttention::rows_of(int64_t first_head, int64_t count) const {
  const int64_t begin = first_head * head_width_, rows = count * head_width_;
  return {{slice(in_proj_weight_, 0, begin, rows),
           in_proj_bias_.defined() ? slice(in_proj_bias_, 0, begin, rows) : Var()}};
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
  const int64_t counts[] = {kv_heads, kv_heads};
  const std::vector<Var> both = split(split_heads(keys_values_(key), 2 * kv_heads), 1, counts);
  return {both[0], both[1]};
}

Var MultiHeadAttention::attend_to(const Var& q, const KeysValues& source, Context& context,
                                  const Call& call) const {
  const AttentionSpec spec = spec_of_call(options_.spec, call.pattern, context.rate(options_.dropout));
  const bool random = context.training && draws(spec.selection);
  const AttentionResult result = attend(q, source.k, source.v, spec,
                                        {.parameters = terms_,
                                         .training = context.training,
                                         .seed = random ? context.next_seed() : 0,
                                         .name = call.name,
                                         .site = call.site});
  if (result.log_probability.defined()) keep_choices(context, result.log_probability);
  return out_proj_(join_heads(result.output));
}

Var MultiHeadAttention::operator()(const Var& x, Context& context, const Call& call) const {
  check_input(x);
  if (call.cache != nullptr) {
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
  const AttentionSpec plain{.score = options_.spec.score,
                            .selection = soft({.dropout = options_.spec.selection.dropout})};
  require(options_.spec == plain && options_.spec.score.kind != ScoreKind::cosine && !options_.rotary,
          "attention: got ", options_.spec, " for a decoder's step, wanted scaled_dot / full / soft");
  const int64_t tokens = source.size(0) * source.size(1);
  keys_values_.write(source.value().reshape({tokens, options_.width}),
                     cache.append(tokens, 2 * options_.kv_heads * head_width_));
}

Var MultiHeadAttention::attend_cached(const Var& x, const Call& call) const {
  const int64_t rows = call.rows->rows(), width = options_.width, keys = options_.kv_heads * head_width_;
  require(x.size(0) * x.size(1) == rows, "attention: got ", x.shape(), " for a step of ", rows, " rows");
  const Var q = query_(x);
  const Score& score = options_.spec.score;
  const Tensor out(x.shape());
  kernels::attention_step({.rows = rows,
                           .heads = options_.heads,
                           .kv_heads = options_.kv_heads,
                           .d = head_width_,
                           .scale = score.kind == ScoreKind::dot ? 1
                                    : score.number != 0
                                        ? 1 / score.number
                                        : static_cast<float>(1 / std::sqrt(static_cast<double>(head_width_))),
                           .q = q.value().data(),
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

LongformerSelfAttention::LongformerSelfAttention(const LongformerOptions& options, Rng& rng)
    : options_(options),
      query_(options.width, options.width, rng),
      key_(options.width, options.width, rng),
      value_(options.width, options.width, rng),
      query_global_(options.width, options.width, rng),
      key_global_(options.width, options.width, rng),
      value_global_(options.width, options.width, rng) {
  require(options.heads > 0 && options.width % options.heads == 0, "attention: ", options.heads,
          " heads do not divide the width ", options.width);
  add_child("query", query_);
  add_child("key", key_);
  add_child("value", value_);
  add_child("query_global", query_global_);
  add_child("key_global", key_global_);
  add_child("value_global", value_global_);
}

Var LongformerSelfAttention::operator()(const Var& x, std::span<const int64_t> global_tokens,
                                        std::span<const int64_t> lengths, Context& context) const {
  require(x.rank() == 3 && x.size(2) == options_.width, "attention: got input of shape ", x.shape(),
          ", wanted [batch, tokens, ", options_.width, "]");
  for (size_t i = 0; i < global_tokens.size(); ++i) {
    require(global_tokens[i] >= 0 && global_tokens[i] < x.size(1) &&
                (i == 0 || global_tokens[i - 1] < global_tokens[i]),
            "longformer: global token ", global_tokens[i], " of ", x.size(1),
            " tokens; wanted places that ascend");
  }
  const auto with_lengths = [&](Pattern pattern) {
    return lengths.empty() ? pattern : pattern & fovea::lengths({lengths.begin(), lengths.end()});
  };
  const auto run = [&](const Var& q, const Var& k, const Var& v, Pattern pattern, std::string_view name) {
    const float rate = context.rate(options_.dropout);
    return join_heads(
        attend(split_heads(q, options_.heads), split_heads(k, options_.heads), split_heads(v, options_.heads),
               {.pattern = std::move(pattern), .selection = soft({.dropout = rate})},
               {.training = context.training, .seed = rate > 0 ? context.next_seed() : 0, .name = name})
            .output);
  };
  Pattern local = window(options_.one_side, options_.one_side, options_.dilation);
  if (!global_tokens.empty()) local = local | global({global_tokens.begin(), global_tokens.end()});
  const Var out = run(query_(x), key_(x), value_(x), with_lengths(std::move(local)), "longformer.local");
  if (global_tokens.empty()) return out;
  const Var wide = run(query_global_(take_tokens(x, global_tokens)), key_global_(x), value_global_(x),
                       with_lengths(full()), "longformer.global");
  return put_tokens(out, wide, global_tokens);
}

}  // namespace fovea::nn
