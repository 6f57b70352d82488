// The attentional models of Luong et al. (2015): stacked LSTMs, and a decoder that attends after every step.
//
// The attentional vector h~ = tanh(Wc [context; h]) is what the output layer reads and, with input feeding,
// what the next step reads beside its token.
#pragma once

#include <string>
#include <tuple>

#include "models/size_ranges.h"
#include "models/translation.h"
#include "nn/decoder_attention.h"
#include "nn/recurrent.h"
#include "nn/sentence_keys.h"

namespace fovea::models {

struct LuongConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding = 512, width = 512, layers = 2;
  std::string score = "bilinear";
  std::string selection = "soft";
  std::string locality = "global";
  int64_t window = 10;
  std::string attention = "";  // a spec; empty: made of score, selection, locality and window
  bool input_feeding = true;
  bool bidirectional = false;
  float dropout = 0.2f;
  std::string tie = "none";

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = LuongConfig;
    return std::tuple{
        Sized{"source_vocabulary", &T::source_vocabulary, "tokens of the source", kVocabularies},
        Sized{"target_vocabulary", &T::target_vocabulary, "tokens of the target", kVocabularies},
        Sized{"embedding", &T::embedding, "features of a token", kWidths},
        Sized{"width", &T::width, "features of the LSTM states and of the attention output", kWidths},
        Sized{"layers", &T::layers, "stacked LSTM layers in the encoder and in the decoder", kLayers},
        Field{
            "score", &T::score,
            "score of the alignment: bilinear (general), dot, concat, location, additive, scaled_dot, cosine(0.1)"},
        Field{"selection", &T::selection,
              "how scores become weights: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid"},
        Field{
            "locality", &T::locality,
            "source tokens that are attended to: global (all), local_m (a window around the token's own position) or local_p (a window around a predicted position)"},
        Sized{"window", &T::window, "local attention: number of source tokens on each side of the position",
              between(1, 1 << 20)},
        Field{
            "attention", &T::attention,
            "attention spec of the alignment, such as \"additive / window(8,8) / sparsemax\", instead of --score, "
            "--selection, --locality and --window"},
        Field{"input_feeding", &T::input_feeding,
              "input feeding: a step also reads the attention output of the step before it"},
        Field{"bidirectional", &T::bidirectional,
              "read the source in both directions, with half the width each"},
        Sized{"dropout", &T::dropout,
              "dropout rate on embeddings, between layers and before the output layer", probability()},
        Field{"tie", &T::tie,
              "which embedding tables are shared: all, output or none; output needs width = embedding"}};
  }
};

// Parameters: source_embedding, target_embedding, output, output_bias; encoder... and decoder... (nn::LSTM);
// with input feeding decoder.weight_feed [4 H, H]; attention... (nn::DecoderAttention); combine.context and
// combine.state [H, H], the two halves of Wc.
class Luong : public TranslationModel {
 public:
  // Throws Error on a config that makes no sense.
  Luong(const LuongConfig& config, Rng& rng);

  Var states(const data::Batch& batch, nn::Context& context) const override;
  OutputLayer output_layer() const override { return {output, output_bias}; }
  std::unique_ptr<Decoding> decode(const Sentences& sources) const override {
    return decoding(*this, sources);
  }

  struct Memory {
    Var keys, values;              // [keys, d], [keys, H]: what Wc makes of a context
    nn::RecurrentStates first;     // the decoder's first states, [layers, sentences, H]
    std::vector<int64_t> lengths;  // keys of each sentence
  };
  struct State {
    std::vector<Tensor> h, c;  // of each layer, [rows, H]
    Tensor attentional;        // [rows, H]: h~ of the step before
    nn::SentenceKeys source;
    int64_t step = 0;
    void reorder(std::span<const int32_t> parents);
  };
  Memory encode(const Sentences& source, nn::Context& context) const;
  State start(const Memory& memory) const;
  Tensor step(State& state, std::span<const int32_t> tokens) const;

  const LuongConfig& config() const { return config_; }
  Var source_embedding, target_embedding, output, output_bias;
  nn::LSTM encoder, decoder;
  nn::DecoderAttention attention;
  Var combine_context, combine_state;
  Var feed;  // undefined without input feeding

 private:
  // The decoder's first states, [layers, sentences, H], from the encoder's last.
  nn::RecurrentStates first_states(const nn::RecurrentStates& last) const;
  // The step loop of input feeding, without first states, keys and values.
  AttentiveLstm fed_decoder(const Var& products, nn::Context& context) const;
  // h~ of a step whose highest states are h.
  Tensor attend(const State& state, const Tensor& h) const;

  LuongConfig config_;
  nn::Projection values_, feed_, key_;
  nn::Projection
      from_state_;  // the state's part of h~, the query where it has a matrix, the predicted place's
};

}  // namespace fovea::models
