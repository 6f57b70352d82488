// A text read by LSTMs and summed up by one learned query (Zhou et al. 2016; Lin et al. 2017 with one head).
#pragma once

#include <memory>
#include <string>
#include <tuple>

#include "models/classification.h"
#include "models/size_ranges.h"
#include "nn/attention_pooling.h"
#include "nn/layers.h"
#include "nn/recurrent.h"

namespace fovea::models {

struct LstmClassifierConfig {
  int64_t vocabulary = 0, classes = 0;
  bool pairs = false;
  int64_t embedding = 128;
  int64_t width = 128;
  int64_t layers = 1;
  bool bidirectional = true;
  std::string pooling = "attention";
  std::string score = "additive";
  std::string selection = "soft";
  int64_t attention_width = 0;
  float dropout = 0.5f;

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return pooling == "attention"; }

  static constexpr auto fields() {
    using T = LstmClassifierConfig;
    return std::tuple{
        Sized{"vocabulary", &T::vocabulary, "tokens", kVocabularies},
        Sized{"classes", &T::classes, "labels", between(0, 1e6)},
        Field{"pairs", &T::pairs, "each example is a pair of texts"},
        Sized{"embedding", &T::embedding, "features of a token", kWidths},
        Sized{"width", &T::width, "features of the states of each direction", kWidths},
        Sized{"layers", &T::layers, "stacked recurrent layers", kLayers},
        Field{"bidirectional", &T::bidirectional, "read the text in both directions"},
        Field{"pooling", &T::pooling, "how the states become one vector: attention, mean or last"},
        Field{
            "score", &T::score,
            "score of the learned query and a state: additive, gated, dot, scaled_dot, cosine(0.1), bilinear or concat"},
        Field{"selection", &T::selection,
              "how scores become weights: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid or identity"},
        Sized{"attention_width", &T::attention_width,
              "features of the hidden layer of an additive, gated or concat score; 0: as many as the states",
              between(0, 1 << 16)},
        Sized{"dropout", &T::dropout,
              "dropout rate on embeddings, between layers and before the output layer", probability()}};
  }
};

// Parameters: embedding, encoder... (nn::LSTM), attention... (nn::AttentionPooling), pair... (PairFeatures, of
// pairs: both texts are read by the same encoder), output...
class LstmClassifier : public ClassificationModel {
 public:
  // Throws Error on a config that makes no sense.
  LstmClassifier(const LstmClassifierConfig& config, Rng& rng);
  data::TextForm form() const override { return data::TextForm::plain; }
  Var logits(const Sentences& texts, nn::Context& context) const override;

 private:
  LstmClassifierConfig config_;
  Var embedding_;
  nn::LSTM encoder_;
  std::unique_ptr<nn::AttentionPooling> attention_;  // null: pooling without
  std::unique_ptr<PairFeatures> pair_;               // of pairs
  nn::Linear output_;
};

}  // namespace fovea::models
