#include "models/transformer.h"

#include <cmath>

#include "autograd/ops.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

nn::TransformerOptions layer_options(const TransformerConfig& config, const std::string& spec) {
  return {.width = config.width,
          .heads = config.heads,
          .hidden = config.hidden,
          .dropout = config.dropout,
          .attention_dropout = config.attention_dropout,
          .activation = nn::activation_named(config.activation),
          .norm_first = config.norm_first,
          .spec = parse_spec(spec)};
}

const TransformerConfig& checked(const TransformerConfig& c) {
  check_tables({"transformer", c.source_vocabulary, c.target_vocabulary, c.tie});
  require(c.width > 0 && c.heads > 0 && c.hidden > 0 && c.encoder_layers >= 0 && c.decoder_layers >= 1,
          "transformer: width, heads, hidden and decoder_layers must be above 0");
  require(c.positions == "sinusoid" || c.positions == "learned", "transformer: positions '", c.positions,
          "', wanted sinusoid or learned");
  return c;
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, Rng& rng)
    : encoder(layer_options(checked(config), config.self_attention), config.encoder_layers, config.norm_first,
              rng),
      decoder(layer_options(config, "scaled_dot / full / soft"), config.decoder_layers, config.norm_first,
              rng),
      config_(config) {
  const float deviation = 1 / std::sqrt(static_cast<float>(config.width));
  const auto table = [&](int64_t rows) { return nn::normal({rows, config.width}, 0, deviation, rng); };
  target_embedding = add_parameter("target_embedding", table(config.target_vocabulary));
  if (config.tie == "all") {
    source_embedding = target_embedding;
  } else {
    source_embedding = add_parameter("source_embedding", table(config.source_vocabulary));
  }
  output = config.tie == "none" ? add_parameter("output", table(config.target_vocabulary)) : target_embedding;
  if (config.positions == "learned") {
    source_positions = add_parameter("source_positions", table(config.max_positions));
    target_positions = add_parameter("target_positions", table(config.max_positions));
  }
  add_child("encoder", encoder);
  add_child("decoder", decoder);
}

Var Transformer::embed(const Var& table, const Var& learned, const Sentences& tokens,
                       nn::Context& context) const {
  return reshape(embed_at_positions(table, learned, tokens, config_.dropout, context),
                 {1, tokens.total(), config_.width});
}

Var Transformer::encode(const Sentences& source, nn::Context& context) const {
  return encoder(embed(source_embedding, source_positions, source, context), context,
                 {.self = documents(source.lengths)});
}

Var Transformer::decode(const Var& memory, const Sentences& source, const Sentences& target,
                        nn::Context& context) const {
  return decoder(
      embed(target_embedding, target_positions, target, context), memory, context,
      {.self = documents(target.lengths) & causal(), .cross = documents(target.lengths, source.lengths)});
}

Var Transformer::states(const data::Batch& batch, nn::Context& context) const {
  const Sentences source(batch.source, batch.source_lengths), target(batch.target_in, batch.target_lengths);
  const Var hidden = decode(encode(source, context), source, target, context);
  return reshape(hidden, {target.total(), config_.width});
}

}  // namespace fovea::models
