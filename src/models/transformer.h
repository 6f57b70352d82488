// The Transformer of Vaswani et al. (2017) as a translator.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/size_ranges.h"
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
  std::string positions = "sinusoid";  // or "sinusoid_halves" (all sines before all cosines), "learned"
  int64_t max_positions = 1024;        // learned positions
  std::string activation = "relu";     // or "gelu", "swish"
  std::optional<float> activation_dropout = {};  // empty: as dropout
  bool scale_embedding = true, output_bias = false;
  std::string self_attention = "scaled_dot / full / soft";  // the encoder's

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = TransformerConfig;
    return std::tuple{
        Sized{"source_vocabulary", &T::source_vocabulary, "tokens of the source", kVocabularies},
        Sized{"target_vocabulary", &T::target_vocabulary, "tokens of the target", kVocabularies},
        Sized{"width", &T::width, "features of a token between layers", kWidths},
        Sized{"heads", &T::heads, "attention heads of a layer", between(1, 1024)},
        Sized{"hidden", &T::hidden, "features inside the feed-forward net", kWidths},
        Sized{"encoder_layers", &T::encoder_layers, "layers that read the source", between(0, 1024)},
        Sized{"decoder_layers", &T::decoder_layers, "layers that write the target", kLayers},
        Sized{"dropout", &T::dropout, "dropout rate on sub-layers and embeddings", probability()},
        Sized{"attention_dropout", &T::attention_dropout, "dropout rate on attention weights", probability()},
        Field{"norm_first", &T::norm_first, "pre-norm instead of post-norm"},
        Field{"tie", &T::tie, "which embedding tables are shared: all, output or none"},
        Field{"positions", &T::positions,
              "position encoding: sinusoid, sinusoid_halves (sines before cosines) or learned"},
        Sized{"max_positions", &T::max_positions,
              "number of learned positions: the most tokens of a sentence", between(1, 1 << 24)},
        Field{"activation", &T::activation, "activation of the feed-forward net: relu, gelu or swish"},
        Field{"activation_dropout", &T::activation_dropout,
              "dropout rate inside the feed-forward net (default: as dropout)"},
        Field{"scale_embedding", &T::scale_embedding, "multiply embeddings by sqrt(width)"},
        Field{"output_bias", &T::output_bias, "add a bias to the logits"},
        Field{"self_attention", &T::self_attention, "attention spec of the encoder"}};
  }
};

// Parameters: encoder..., decoder... as nn::Transformer names them; source_embedding, target_embedding,
// output (those that are tied appear once); output_bias [vocabulary] where there is one; source_positions,
// target_positions where learned.
class Transformer : public TranslationModel {
 public:
  // Throws Error on a config that makes no sense.
  Transformer(const TransformerConfig& config, Rng& rng);

  Var states(const data::Batch& batch, nn::Context& context) const override;
  OutputLayer output_layer() const override { return {output, output_bias}; }
  std::unique_ptr<Decoding> decode(const Sentences& sources) const override {
    return decoding(*this, sources);
  }

  struct Memory {
    Var states;                    // [1, total, width]
    std::vector<int64_t> lengths;  // of each sentence
  };
  struct State {
    nn::DecoderCache cache;
    int32_t position = 0;  // of the next token
    void reorder(std::span<const int32_t> parents) { cache.reorder(parents); }
  };
  Memory encode(const Sentences& source, nn::Context& context) const;
  State start(const Memory& memory) const;
  Tensor step(State& state, std::span<const int32_t> tokens) const;

  const TransformerConfig& config() const { return config_; }
  // From now on the row of this token is not learned by being read, as PyTorch treats the padding.
  void hold_constant(int32_t token) { form_.constant_token = token; }
  // Keeps a layer prepared whose matrices were dropped (WeightReader): the network can only be used then.
  void keep_prepared(nn::Prepared layer) { prepared_layers_.push_back(std::move(layer)); }
  Var source_embedding, target_embedding, output;
  Var output_bias;  // undefined: none
  Var source_positions, target_positions;
  nn::TransformerEncoder encoder;
  nn::TransformerDecoder decoder;

 private:
  Var embed(const Var& table, const Var& learned, const Sentences& tokens, nn::Context& context) const;

  TransformerConfig config_;
  EmbeddingForm form_;
  Pattern pattern_;  // of the encoder, within a sentence
  std::vector<nn::Prepared> prepared_layers_;
};

}  // namespace fovea::models
