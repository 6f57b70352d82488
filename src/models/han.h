// Hierarchical attention (Yang et al. 2016): words make sentences, sentences make a text, and at either level
// a learned query says what counts.
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

struct HanConfig {
  int64_t vocabulary = 0, classes = 0;
  bool pairs = false;
  int64_t embedding = 128;
  int64_t width = 64;
  int64_t attention_width = 0;
  std::string score = "additive";
  std::string selection = "soft";
  float dropout = 0.5f;

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = HanConfig;
    return std::tuple{
        Sized{"vocabulary", &T::vocabulary, "tokens", kVocabularies},
        Sized{"classes", &T::classes, "labels", between(0, 1e6)},
        Field{"pairs", &T::pairs, "each example is a pair of texts"},
        Sized{"embedding", &T::embedding, "features of a token", kWidths},
        Sized{"width", &T::width, "features of the states of each direction, for words and for sentences",
              kWidths},
        Sized{"attention_width", &T::attention_width,
              "features of the hidden layer of an additive, gated or concat score; 0: as many as the states",
              between(0, 1 << 16)},
        Field{
            "score", &T::score,
            "score of a learned query and a state: additive, gated, dot, scaled_dot, cosine(0.1), bilinear or concat"},
        Field{
            "selection", &T::selection,
            "how scores become weights, of words and of sentences: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid "
            "or identity"},
        Sized{"dropout", &T::dropout, "dropout rate on embeddings, on sentences and before the output layer",
              probability()}};
  }
};

// Parameters: embedding; words..., sentences... (nn::GRU, both ways); word_attention...,
// sentence_attention... (nn::AttentionPooling); pair... (PairFeatures, of pairs); output...
class Han : public ClassificationModel {
 public:
  // Throws Error on a config that makes no sense.
  Han(const HanConfig& config, Rng& rng);
  data::TextForm form() const override { return data::TextForm::sentences; }
  Var logits(const Sentences& texts, nn::Context& context) const override;

 private:
  HanConfig config_;
  Var embedding_;
  nn::GRU words_, sentences_;
  nn::AttentionPooling word_attention_, sentence_attention_;
  std::unique_ptr<PairFeatures> pair_;  // of pairs
  nn::Linear output_;
};

}  // namespace fovea::models
