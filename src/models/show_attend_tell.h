// Show, Attend and Tell (Xu et al. 2015): an LSTM writes a caption and looks, before every word, at the places of a
// picture.
//
//   e_i = v^T tanh(W a_i + U h + b)           how much place i matters now (any score of the algebra)
//   alpha = selection(e)                      soft, hard, gumbel(1), ...
//   z = beta sum_i alpha_i a_i                beta = sigmoid(gate h + b): how much the picture matters now at all
//   h, c = LSTM([E y; z], h, c)
//   p(word) = softmax(output tanh(E y + L_h h + L_z z))
//
// The places' features a come from a frozen encoder (models/mobilenet.h). The first states are made of their mean.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/ops_output.h"
#include "models/decoder.h"
#include "models/size_ranges.h"
#include "nn/decoder_attention.h"
#include "nn/layers.h"
#include "nn/sentence_keys.h"

namespace fovea::models {

// Captions of pictures, packed one after the other, the longest first.
struct CaptionBatch {
  Tensor features;               // [captions, places, channels]: of the picture of each caption
  std::vector<int32_t> in, out;  // [sum of lengths]: fed as kBegin y, wanted as y kEnd
  std::vector<int32_t> lengths;  // [captions]
};

// What training adds to the cross-entropy of the words.
struct CaptionLossOptions {
  float smoothing = 0;
  // Doubly stochastic attention: penalty sum_i (1 - sum_t alpha_ti)^2, divided by the number of words as the
  // cross-entropy is. It needs weights with a gradient: not in the steps where hard attention draws.
  float penalty = 0.01f;
  // Hard attention: the weight of the entropy of what is drawn from, the share of training steps that use the soft
  // weights instead, and how slowly the baseline follows the loss.
  float entropy = 0.002f;
  float soft_share = 0.5f;
  float baseline_decay = 0.9f;
};

class CaptionModel : public DecoderModel {
 public:
  // The captions fed word by word. In training, hard attention draws and its baseline moves.
  virtual OutputLoss loss(const CaptionBatch& batch, const CaptionLossOptions& options,
                          nn::Context& context) const = 0;
  // Stands before the first word of a caption of each picture. features: [pictures, places, channels]. The model must
  // outlive what is returned.
  virtual std::unique_ptr<Decoding> decode(const Tensor& features) const = 0;
  // Where each word of the captions looked, at use.
  struct Trace {
    Tensor weights;  // [words, places]
    Tensor gates;    // [words]: beta; undefined where the model has no gate
  };
  virtual Trace trace(const CaptionBatch& batch) const = 0;
};

struct ShowAttendTellConfig {
  int64_t vocabulary = 0;
  int64_t channels = 0;
  int64_t embedding = 512;
  int64_t width = 512;
  std::string attention = "soft";
  std::string score = "additive";
  int64_t attention_width = 0;
  bool gate = true;
  float dropout = 0.5f;

  static constexpr auto fields() {
    using T = ShowAttendTellConfig;
    return std::tuple{
        Sized{"vocabulary", &T::vocabulary, "tokens of the captions", kVocabularies},
        Sized{"channels", &T::channels, "features of a place of the picture", between(0, 1 << 16)},
        Sized{"embedding", &T::embedding, "features of a token", kWidths},
        Sized{"width", &T::width, "features of the decoder state", kWidths},
        Field{
            "attention", &T::attention,
            "how scores become weights of places: soft, hard (one place, drawn), gumbel, sparsemax or top_k(4)"},
        Field{
            "score", &T::score,
            "score of the decoder state and a place: additive, dot, scaled_dot, cosine(0.1), bilinear or concat"},
        Sized{"attention_width", &T::attention_width,
              "features of the hidden layer of an additive or concat score; 0: as many as the width",
              between(0, 1 << 16)},
        Field{"gate", &T::gate,
              "multiply the attended features by a gate computed from the state (beta in the paper)"},
        Sized{"dropout", &T::dropout, "dropout rate on embeddings and before the output layer",
              probability()}};
  }
  bool has_attention() const { return true; }
};

// Parameters: embedding [V, E], output [V, E], output_bias [V]; first_h, first_c (nn::Linear, of the mean features);
// attention... (nn::DecoderAttention); gate.weight [1, H], gate.bias [1]; of the LSTM, gates i f g o one below the other:
// decoder.embedding [4 H, E], decoder.context [4 H, C], decoder.state [4 H, H], decoder.bias [4 H]; readout.state [E, H],
// readout.context [E, C], readout.bias [E]. Buffer: baseline [1], of hard attention.
class ShowAttendTell : public CaptionModel {
 public:
  // Throws Error on a config that makes no sense.
  ShowAttendTell(const ShowAttendTellConfig& config, Rng& rng);

  OutputLoss loss(const CaptionBatch& batch, const CaptionLossOptions& options,
                  nn::Context& context) const override;
  OutputLayer output_layer() const override { return {output, output_bias}; }
  std::unique_ptr<Decoding> decode(const Tensor& features) const override {
    return decoding(*this, features);
  }
  Trace trace(const CaptionBatch& batch) const override;

  // What is kept of pictures: one key a place.
  struct Memory {
    Var keys, values;             // [pictures places, d], [pictures places, C]
    Var h, c;                     // [pictures, H]: the decoder's first
    std::vector<int64_t> places;  // of each picture
  };
  struct State {
    Tensor h, c;  // [rows, H]
    nn::SentenceKeys places;
    void reorder(std::span<const int32_t> parents);
  };
  Memory encode(const Tensor& features, nn::Context& context) const;
  State start(const Memory& memory) const;
  Tensor step(State& state, std::span<const int32_t> tokens) const;

  const ShowAttendTellConfig& config() const { return config_; }
  Var embedding_table, output, output_bias;
  nn::Linear first_h, first_c;
  nn::DecoderAttention attention;
  Var gate_weight, gate_bias;  // undefined: no gate
  struct InputWeights {
    Var embedding, context, state, bias;
  };
  InputWeights decoder, readout;  // readout.embedding is undefined: the embedding itself
  Var baseline;

 private:
  // One pass over whole captions.
  struct Pass {
    Var read;               // what the output layer reads, [words, E]
    Var weights;            // [words, places] with a gradient, where requested
    Var entropy;            // [words], of what hard attention drew from
    Tensor shown, gates{};  // [words, places] and [words], where requested
  };
  struct PassOptions {
    Selection selection;
    bool weights = false;  // with a gradient
    bool shown = false;    // weights and gates as numbers
  };
  Pass pass(const CaptionBatch& batch, const PassOptions& options, nn::Context& context) const;
  Var penalty(const Var& weights, const CaptionBatch& batch) const;

  ShowAttendTellConfig config_;
  nn::Projection from_token_, from_state_, from_context_, read_state_, key_;
};

}  // namespace fovea::models
