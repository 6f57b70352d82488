// Transformer encoder and decoder layers, post-norm and pre-norm, and stacks of them.
#include "nn/transformer.h"

#include <string>

#include "autograd/in_place.h"

namespace fovea::nn {
namespace {

MultiHeadOptions attention_options(const TransformerOptions& options, const AttentionSpec& spec) {
  return {.width = options.width,
          .heads = options.heads,
          .kv_heads = options.kv_heads,
          .dropout = options.attention_dropout < 0 ? options.dropout : options.attention_dropout,
          .bias = options.bias,
          .spec = spec,
          .rotary = options.rotary,
          .qkv_bias = options.qkv_bias,
          .global_projections = options.global_projections,
          .relative = options.relative};
}

MultiHeadOptions cross_options(const TransformerOptions& options) {
  MultiHeadOptions cross = attention_options(options, {});
  cross.rotary.reset();
  cross.qkv_bias = true;
  cross.global_projections = false;
  return cross;
}

// Adds a branch to the stream. Post-norm: the sum is normalised by the layer's own norm and that is the
// stream. Pre-norm: the sum is the stream, and comes with the norm of the next layer.
Stream add_branch(const Var& branch, const Stream& stream, const LayerNorm* norm, bool norm_first,
                  float dropout, Context& context) {
  const float rate = context.rate(dropout);
  const uint64_t seed = rate > 0 ? context.next_seed() : 0;
  if (norm == nullptr) return {stream.sum + fovea::dropout(branch, rate, seed), {}};
  // A branch ends in a Linear without activation, whose gradient does not read its result: the sum is written over it.
  if (!norm_first)
    return {
        residual_dropout_norm_alone(branch, stream.sum, norm->weight, norm->bias, rate, seed, norm->epsilon),
        {}};
  const NormedSum result =
      residual_dropout_norm_in_place(branch, stream.sum, norm->weight, norm->bias, rate, seed, norm->epsilon);
  return {result.sum, result.normed};
}

const Var& input_of(const Stream& stream, bool norm_first) {
  return norm_first ? stream.normed : stream.sum;
}

std::string join(std::string_view name, std::string_view part) {
  return std::string(name) + "." + std::string(part);
}

std::string layer_name(std::string_view stack, size_t i) {
  return std::string(stack) + "." + std::to_string(i);
}

}  // namespace

FeedForward::FeedForward(const TransformerOptions& options, Rng& rng)
    : linear1(options.width, options.hidden, rng, options.bias),
      linear2(options.hidden, options.width, rng, options.bias),
      activation_(options.activation),
      dropout_(options.hidden_dropout < 0 ? options.dropout : options.hidden_dropout) {}

Var FeedForward::operator()(const Var& x, Context& context) const {
  const float rate = context.rate(dropout_);
  if (rate == 0) return linear2(linear1(x, activation_));
  return linear2(linear_dropout(x, linear1.weight, linear1.bias, activation_, rate, context.next_seed()));
}

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerOptions& options, Rng& rng)
    : self_attn(attention_options(options, options.spec), rng),
      feed_forward(options, rng),
      norm1(options.width, options.epsilon),
      norm2(options.width, options.epsilon),
      dropout_(options.dropout),
      norm_first_(options.norm_first) {
  add_child("self_attn", self_attn);
  add_child("linear1", feed_forward.linear1);
  add_child("linear2", feed_forward.linear2);
  add_prepared_matrix(feed_forward.linear1.weight);
  add_prepared_matrix(feed_forward.linear2.weight);
  add_child("norm1", norm1);
  add_child("norm2", norm2);
}

Stream TransformerEncoderLayer::step(const Stream& stream, const LayerNorm* next, Context& context,
                                     const Visibility& visible, const LayerPlace& place) const {
  const auto layer = static_cast<size_t>(place.layer);
  require(visible.self_of_layers.empty() || layer < visible.self_of_layers.size(),
          "Transformer: got patterns for ", visible.self_of_layers.size(), " layers, but there is a layer ",
          layer);
  const std::string name = join(place.name, "self");
  const Var attended =
      self_attn(input_of(stream, norm_first_), context,
                {.pattern = visible.self_of_layers.empty() ? visible.self : visible.self_of_layers[layer],
                 .positions = visible.positions,
                 .name = name,
                 .site = {.kind = AttentionSite::Kind::self, .layer = place.layer},
                 .global = visible.global,
                 .key_bias = visible.key_bias});
  const Stream middle =
      add_branch(attended, stream, norm_first_ ? &norm2 : &norm1, norm_first_, dropout_, context);
  const Var ffn_out = feed_forward(input_of(middle, norm_first_), context);
  return add_branch(ffn_out, middle, norm_first_ ? next : &norm2, norm_first_, dropout_, context);
}

Var TransformerEncoderLayer::operator()(const Var& x, Context& context, const Visibility& visible,
                                        std::string_view name) const {
  return step({x, norm_first_ ? norm1(x) : Var()}, nullptr, context, visible, {name}).sum;
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerOptions& options, Rng& rng)
    : self_attn(attention_options(options, options.spec), rng),
      multihead_attn(cross_options(options), rng),
      feed_forward(options, rng),
      norm1(options.width, options.epsilon),
      norm2(options.width, options.epsilon),
      norm3(options.width, options.epsilon),
      dropout_(options.dropout),
      norm_first_(options.norm_first) {
  add_child("self_attn", self_attn);
  add_child("multihead_attn", multihead_attn);
  add_child("linear1", feed_forward.linear1);
  add_child("linear2", feed_forward.linear2);
  add_prepared_matrix(feed_forward.linear1.weight);
  add_prepared_matrix(feed_forward.linear2.weight);
  add_child("norm1", norm1);
  add_child("norm2", norm2);
  add_child("norm3", norm3);
}

Stream TransformerDecoderLayer::step(const Stream& stream, const Var& memory, const LayerNorm* next,
                                     Context& context, const Visibility& visible,
                                     const LayerPlace& place) const {
  std::string self_name, cross_name;
  MultiHeadAttention::Call self{
      .site = {.kind = AttentionSite::Kind::self, .decoder = true, .layer = place.layer}};
  MultiHeadAttention::Call cross{
      .site = {.kind = AttentionSite::Kind::cross, .decoder = true, .layer = place.layer}};
  if (place.cache != nullptr) {
    self.cache = &place.cache->self;
    self.rows = &visible.cache->self;
    cross.cache = &place.cache->cross;
    cross.rows = &visible.cache->cross;
  } else {
    self.pattern = visible.self;
    self.positions = visible.positions;
    self.name = self_name = join(place.name, "self");
    cross.pattern = visible.cross;
    cross.name = cross_name = join(place.name, "cross");
  }
  const Var self_out = self_attn(input_of(stream, norm_first_), context, self);
  const Stream own =
      add_branch(self_out, stream, norm_first_ ? &norm2 : &norm1, norm_first_, dropout_, context);
  const Var cross_out = multihead_attn.cross(input_of(own, norm_first_), memory, context, cross);
  const Stream informed =
      add_branch(cross_out, own, norm_first_ ? &norm3 : &norm2, norm_first_, dropout_, context);
  const Var ffn_out = feed_forward(input_of(informed, norm_first_), context);
  return add_branch(ffn_out, informed, norm_first_ ? next : &norm3, norm_first_, dropout_, context);
}

Var TransformerDecoderLayer::operator()(const Var& x, const Var& memory, Context& context,
                                        const Visibility& visible, std::string_view name) const {
  return step({x, norm_first_ ? norm1(x) : Var()}, memory, nullptr, context, visible, {name}).sum;
}

namespace {

// Runs a stack: in pre-norm each layer's last sum meets the norm that follows it, so that no pass over memory
// is spent on a sum or a norm alone.
template <class Layers, class Step>
Var run_stack(const Var& x, const Layers& layers, const LayerNorm* last, bool norm_first, const Step& step) {
  if (layers.empty()) return last != nullptr ? (*last)(x) : x;
  Stream stream{x, norm_first ? layers[0]->norm1(x) : Var()};
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerNorm* next = i + 1 < layers.size() ? &layers[i + 1]->norm1 : last;
    stream = step(*layers[i], stream, next, i);
  }
  if (last == nullptr) return stream.sum;
  return norm_first ? stream.normed : (*last)(stream.sum);
}

}  // namespace

TransformerEncoder::TransformerEncoder(const TransformerOptions& options, int64_t count, bool last_norm,
                                       Rng& rng)
    : norm_first_(options.norm_first) {
  for (int64_t i = 0; i < count; ++i) {
    layers.push_back(std::make_unique<TransformerEncoderLayer>(options, rng));
    add_child(layer_name("layers", static_cast<size_t>(i)), *layers.back());
  }
  if (last_norm) {
    norm = std::make_unique<LayerNorm>(options.width, options.epsilon);
    add_child("norm", *norm);
  }
}

Var TransformerEncoder::operator()(const Var& x, Context& context, const Visibility& visible) const {
  return run_stack(
      x, layers, norm.get(), norm_first_,
      [&](const TransformerEncoderLayer& layer, const Stream& stream, const LayerNorm* next, size_t i) {
        return layer.step(stream, next, context, visible,
                          {layer_name("encoder", i), nullptr, static_cast<int64_t>(i)});
      });
}

TransformerDecoder::TransformerDecoder(const TransformerOptions& options, int64_t count, bool last_norm,
                                       Rng& rng)
    : norm_first_(options.norm_first) {
  for (int64_t i = 0; i < count; ++i) {
    layers.push_back(std::make_unique<TransformerDecoderLayer>(options, rng));
    add_child(layer_name("layers", static_cast<size_t>(i)), *layers.back());
  }
  if (last_norm) {
    norm = std::make_unique<LayerNorm>(options.width, options.epsilon);
    add_child("norm", *norm);
  }
}

Var TransformerDecoder::operator()(const Var& x, const Var& memory, Context& context,
                                   const Visibility& visible) const {
  return run_stack(
      x, layers, norm.get(), norm_first_,
      [&](const TransformerDecoderLayer& layer, const Stream& stream, const LayerNorm* next, size_t i) {
        LayerCache* const cache = visible.cache != nullptr ? &visible.cache->layers[i] : nullptr;
        return layer.step(stream, memory, next, context, visible,
                          {layer_name("decoder", i), cache, static_cast<int64_t>(i)});
      });
}

DecoderCache TransformerDecoder::start(const Var& memory, std::span<const int64_t> lengths) const {
  DecoderCache cache;
  cache.layers.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) layers[i]->multihead_attn.fill(cache.layers[i].cross, memory);
  cache.self = CacheRows::growing(static_cast<int64_t>(lengths.size()));
  cache.cross = CacheRows::of_sentences(lengths);
  require(cache.cross.slot_count() == memory.size(0) * memory.size(1), "Transformer: got memory of shape ",
          memory.shape(), " for sentences of ", cache.cross.slot_count(), " tokens in all");
  return cache;
}

}  // namespace fovea::nn
