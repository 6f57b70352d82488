// RNNsearch of Bahdanau et al. (2015), and the encoder-decoder without attention that it improved on.
//
// The source is read by a GRU in both directions. A GRU writes the target: before each token it looks at the
// source, and what it saw enters all of its gates. Without attention, it sees at every step one and the same
// vector of the whole source: a memory of a single key. The GRU is PyTorch's, whose reset gate acts after the
// product with the state.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "models/size_ranges.h"
#include "models/translation.h"
#include "nn/decoder_attention.h"
#include "nn/layers.h"
#include "nn/recurrent.h"
#include "nn/sentence_keys.h"

namespace fovea::models {

struct RnnConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding = 512;
  int64_t width = 512;            // of the decoder's state and of each direction of the encoder
  std::string output = "maxout";  // or "linear"
  float dropout = 0.2f;
  std::string tie = "none";  // "all": source, target and output share one table; "output"; "none"

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return false; }

  static constexpr auto fields() {
    using T = RnnConfig;
    return std::tuple{
        Sized{"source_vocabulary", &T::source_vocabulary, "tokens of the source", kVocabularies},
        Sized{"target_vocabulary", &T::target_vocabulary, "tokens of the target", kVocabularies},
        Sized{"embedding", &T::embedding, "features of a token", kWidths},
        Sized{"width", &T::width, "features of the decoder state, and of each direction of the encoder",
              kWidths},
        Field{"output", &T::output, "what the output layer reads: maxout or linear"},
        Sized{"dropout", &T::dropout,
              "dropout rate on embeddings, on the encoder states and before the output layer", probability()},
        Field{"tie", &T::tie, "which embedding tables are shared: all, output or none"}};
  }
};

struct BahdanauConfig : RnnConfig {
  std::string score = "additive";
  int64_t attention_width = 0;  // inside an additive or concat score; 0: width
  std::string selection = "soft";
  std::string attention = "";  // a spec; empty: made of score and selection

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = BahdanauConfig;
    return std::tuple_cat(
        RnnConfig::fields(),
        std::tuple{
            Field{
                "score", &T::score,
                "score of the alignment: additive, dot, scaled_dot, cosine(0.1), bilinear, concat or location"},
            Field{"selection", &T::selection,
                  "how scores become weights: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid"},
            Field{
                "attention", &T::attention,
                "attention spec of the alignment, such as \"additive / window(8,8) / sparsemax\", instead of --score and "
                "--selection"},
            Sized{"attention_width", &T::attention_width,
                  "features of the hidden layer of an additive or concat score; 0: as many as the width",
                  between(0, 1 << 16)}});
  }
};

// Parameters: source_embedding, target_embedding, output, output_bias; encoder... (nn::GRU, both ways);
// bridge.weight, bridge.bias; attention... (nn::DecoderAttention); of the decoder, gates r z n one below the
// other: decoder.embedding [3 H, E], decoder.context [3 H, 2 H], decoder.state [3 H, H], decoder.bias and
// decoder.state_bias [3 H]; readout.embedding, readout.context, readout.state, readout.bias: what the output
// layer reads, E wide, for maxout twice that.
class Bahdanau : public TranslationModel {
 public:
  // Throw Error on a config that makes no sense.
  Bahdanau(const BahdanauConfig& config, Rng& rng);
  // Without attention.
  Bahdanau(const RnnConfig& config, Rng& rng);

  Var states(const data::Batch& batch, nn::Context& context) const override;
  OutputLayer output_layer() const override { return {output, output_bias}; }
  std::unique_ptr<Decoding> decode(const Sentences& sources) const override {
    return decoding(*this, sources);
  }

  // What is kept of sources: one key a token, or, without attention, one a sentence.
  struct Memory {
    Var keys, values;  // [keys, d], [keys, 3 H + readout]: the context's part of gates and readout
    Var state;         // [sentences, H]: the decoder's first
    std::vector<int64_t> lengths;  // keys of each sentence
  };
  struct State {
    Tensor hidden;  // [rows, H]
    nn::SentenceKeys source;
    int64_t step = 0;
    void reorder(std::span<const int32_t> parents);
  };
  Memory encode(const Sentences& source, nn::Context& context) const;
  State start(const Memory& memory) const;
  Tensor step(State& state, std::span<const int32_t> tokens) const;

  const RnnConfig& config() const { return config_; }
  int64_t readout_width() const { return (config_.output == "maxout" ? 2 : 1) * config_.embedding; }
  Var source_embedding, target_embedding, output, output_bias;
  nn::GRU encoder;
  nn::Linear bridge;
  std::unique_ptr<nn::DecoderAttention> attention;  // null: without
  struct InputWeights {
    Var embedding, context, state, bias;
  };
  InputWeights decoder, readout;
  Var decoder_state_bias;

 private:
  struct Choice {
    std::optional<AttentionSpec> spec = {};  // empty: no attention
    int64_t width = 0;
  };
  Bahdanau(const RnnConfig& config, const Choice& attention, Rng& rng);

  // What of gates and readout depends on the token alone, [tokens, 3 H] and [tokens, readout].
  struct TokenTerms {
    Var gates, readout;
  };
  TokenTerms token_terms(const Var& embedded) const;
  // What a step sees of the source: [rows, 3 H + readout]. from_state: what from_state_ makes of the state.
  Tensor attend(const State& state, const Tensor& from_state) const;
  // read: [rows, readout] -> what the output layer reads, [rows, E].
  Var maxed(const Var& read) const;

  RnnConfig config_;
  nn::Projection from_token_, from_context_;  // gates, then readout
  nn::Projection from_state_;                 // gates, then the query where it has a matrix
  nn::Projection read_state_, key_;
};

}  // namespace fovea::models
