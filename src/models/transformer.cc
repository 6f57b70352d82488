#include "models/transformer.h"

#include <cmath>

#include "autograd/ops.h"
#include "models/encoder_options.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

nn::TransformerOptions layer_options(const TransformerConfig& config, const AttentionSpec& spec) {
  nn::TransformerOptions options = packed_encoder_options(config, spec);
  options.hidden_dropout = config.activation_dropout.value_or(-1);
  return options;
}

// The loss of a translation is not known for each choice of a layer, so nothing could reward hard ones.
AttentionSpec trainable(const AttentionSpec& spec) {
  require(
      spec.selection.kind != SelectionKind::hard, "transformer: self_attention is ", spec,
      ", whose choices a translator cannot train; wanted gumbel(1), which takes one key in use, or another "
      "selection");
  return spec;
}

const TransformerConfig& checked(const TransformerConfig& c) {
  check_ranges(c, "transformer");
  check_tables({"transformer", c.source_vocabulary, c.target_vocabulary, c.tie});
  require(c.positions == "sinusoid" || c.positions == "sinusoid_halves" || c.positions == "learned",
          "transformer: positions '", c.positions, "', wanted sinusoid, sinusoid_halves or learned");
  const float inside = c.activation_dropout.value_or(0);
  require(inside >= 0 && inside < 1, "transformer: activation_dropout is ", inside,
          ", wanted 0 or more and below 1");
  return c;
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, Rng& rng)
    : encoder(layer_options(checked(config), trainable(self_attention_spec(config.self_attention))),
              config.encoder_layers, config.norm_first, rng),
      decoder(layer_options(config, {}), config.decoder_layers, config.norm_first, rng),
      config_(config),
      form_{.scaled = config.scale_embedding,
            .sinusoid = config.positions == "sinusoid_halves" ? nn::SinusoidOrder::halves
                                                              : nn::SinusoidOrder::interleaved},
      pattern_(parse_spec(config.self_attention).pattern) {
  const float deviation = 1 / std::sqrt(static_cast<float>(config.width));
  const auto table = [&](int64_t rows) { return nn::normal({rows, config.width}, 0, deviation, rng); };
  target_embedding = add_parameter("target_embedding", table(config.target_vocabulary));
  if (config.tie == "all") {
    source_embedding = target_embedding;
  } else {
    source_embedding = add_parameter("source_embedding", table(config.source_vocabulary));
  }
  output = config.tie == "none" ? add_parameter("output", table(config.target_vocabulary)) : target_embedding;
  if (config.output_bias)
    output_bias = add_parameter("output_bias", nn::constant({config.target_vocabulary}, 0));
  if (config.positions == "learned") {
    source_positions = add_parameter("source_positions", table(config.max_positions));
    target_positions = add_parameter("target_positions", table(config.max_positions));
  }
  add_child("encoder", encoder);
  add_child("decoder", decoder);
}

Var Transformer::embed(const Var& table, const Var& learned, const Sentences& tokens,
                       nn::Context& context) const {
  return reshape(embed_at_positions(table, learned, tokens, config_.dropout, context, form_),
                 {1, tokens.total(), config_.width});
}

Transformer::Memory Transformer::encode(const Sentences& source, nn::Context& context) const {
  const Pattern sees = pattern_ == full() ? documents(source.lengths) : within(source.lengths, pattern_);
  return {encoder(embed(source_embedding, source_positions, source, context), context, {.self = sees}),
          source.lengths};
}

Var Transformer::states(const data::Batch& batch, nn::Context& context) const {
  const Sentences source(batch.source, batch.source_lengths), target(batch.target_in, batch.target_lengths);
  const Memory memory = encode(source, context);
  const Var hidden = decoder(
      embed(target_embedding, target_positions, target, context), memory.states, context,
      {.self = documents(target.lengths) & causal(), .cross = documents(target.lengths, source.lengths)});
  return reshape(hidden, {target.total(), config_.width});
}

Transformer::State Transformer::start(const Memory& memory) const {
  return {decoder.start(memory.states, memory.lengths)};
}

Tensor Transformer::step(State& state, std::span<const int32_t> tokens) const {
  const auto rows = static_cast<int64_t>(tokens.size());
  check_step(tokens, state.cache.self.rows());
  nn::Context context;
  const std::vector<int32_t> places(tokens.size(), state.position++);
  const Var x = embed_at(target_embedding, target_positions, tokens, places, form_);
  state.cache.self.add_slots();
  const Var hidden = decoder(reshape(x, {1, rows, config_.width}), {}, context, {.cache = &state.cache});
  return hidden.value().reshape({rows, config_.width});
}

}  // namespace fovea::models
