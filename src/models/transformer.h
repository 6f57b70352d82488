// The Transformer of Vaswani et al. (2017) as a translator.
#pragma once

#include <string>
#include <tuple>

#include "base/fields.h"
#include "models/translation.h"
#include "nn/transformer.h"

namespace fovea::models {

struct TransformerConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t width = 512, heads = 8, hidden = 2048;
  int64_t encoder_layers = 6, decoder_layers = 6;
  float dropout = 0.1f, attention_dropout = 0;
  bool norm_first = false;
  std::string tie = "all";             // "all": source, target and output share one table; "output"; "none"
  std::string positions = "sinusoid";  // or "learned"
  int64_t max_positions = 1024;        // learned positions
  std::string activation = "relu";     // or "gelu"
  std::string self_attention =
      "scaled_dot / full / soft";  // the encoder's; any spec of the algebra that has no trained terms

  static constexpr auto fields() {
    using T = TransformerConfig;
    return std::tuple{Field{"source_vocabulary", &T::source_vocabulary, "tokens of the source"},
                      Field{"target_vocabulary", &T::target_vocabulary, "tokens of the target"},
                      Field{"width", &T::width, "features of a token between layers"},
                      Field{"heads", &T::heads, "attention heads of a layer"},
                      Field{"hidden", &T::hidden, "features inside the feed-forward net"},
                      Field{"encoder_layers", &T::encoder_layers, "layers that read the source"},
                      Field{"decoder_layers", &T::decoder_layers, "layers that write the target"},
                      Field{"dropout", &T::dropout, "of sub-layers and embeddings"},
                      Field{"attention_dropout", &T::attention_dropout, "of attention weights"},
                      Field{"norm_first", &T::norm_first, "pre-norm instead of post-norm"},
                      Field{"tie", &T::tie, "which embeddings are one: all, output or none"},
                      Field{"positions", &T::positions, "sinusoid or learned"},
                      Field{"max_positions", &T::max_positions, "longest sentence of learned positions"},
                      Field{"activation", &T::activation, "relu or gelu"},
                      Field{"self_attention", &T::self_attention, "attention spec of the encoder"}};
  }
};

// Parameters: encoder..., decoder... as nn::Transformer names them; source_embedding, target_embedding,
// output (those that are tied stand once); source_positions, target_positions where learned.
class Transformer : public TranslationModel {
 public:
  // Throws Error on a config that makes no sense.
  Transformer(const TransformerConfig& config, Rng& rng);

  Var states(const data::Batch& batch, nn::Context& context) const override;
  OutputLayer output_layer() const override { return {output}; }

  // Source tokens -> [1, total, width].
  Var encode(const Sentences& source, nn::Context& context) const;
  // Target tokens so far -> [1, total, width], before the output layer.
  Var decode(const Var& memory, const Sentences& source, const Sentences& target, nn::Context& context) const;

  const TransformerConfig& config() const { return config_; }
  Var source_embedding, target_embedding, output;
  Var source_positions, target_positions;
  nn::TransformerEncoder encoder;
  nn::TransformerDecoder decoder;

 private:
  Var embed(const Var& table, const Var& learned, const Sentences& tokens, nn::Context& context) const;

  TransformerConfig config_;
};

}  // namespace fovea::models
