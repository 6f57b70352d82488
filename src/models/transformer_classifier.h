// A Transformer's encoder over a text of any length, with any attention of the algebra: full, or one whose
// cost grows linearly, such as Longformer's and BigBird's.
#pragma once

#include <memory>
#include <string>
#include <tuple>

#include "data/global_tokens.h"
#include "models/classification.h"
#include "models/size_ranges.h"
#include "nn/attention_pooling.h"
#include "nn/transformer.h"

namespace fovea::models {

struct TransformerClassifierConfig {
  int64_t vocabulary = 0, classes = 0;
  bool pairs = false;
  int64_t width = 128, heads = 4, hidden = 512, layers = 2;
  float dropout = 0.1f;
  float attention_dropout = 0;
  bool norm_first = true;
  std::string positions = "sinusoid";
  int64_t max_positions = 4096;
  std::string activation = "gelu";
  std::string self_attention = "scaled_dot / full / soft";
  std::string global = "";
  int64_t added_global = 0;
  std::string pooling = "attention";
  std::string score = "additive";
  std::string selection = "soft";

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = TransformerClassifierConfig;
    return std::tuple{
        Sized{"vocabulary", &T::vocabulary, "tokens", kVocabularies},
        Sized{"classes", &T::classes, "labels", between(0, 1e6)},
        Field{"pairs", &T::pairs, "each example is a pair of texts"},
        Sized{"width", &T::width, "features of a token between layers", kWidths},
        Sized{"heads", &T::heads, "attention heads of a layer", between(1, 1024)},
        Sized{"hidden", &T::hidden, "features inside the feed-forward net", kWidths},
        Sized{"layers", &T::layers, "encoder layers", kLayers},
        Sized{"dropout", &T::dropout, "dropout rate on sub-layers, on embeddings and before the output layer",
              probability()},
        Sized{"attention_dropout", &T::attention_dropout, "dropout rate on attention weights", probability()},
        Field{"norm_first", &T::norm_first, "pre-norm instead of post-norm"},
        Field{"positions", &T::positions,
              "position encoding: sinusoid, learned or none (use none with alibi or relative)"},
        Sized{"max_positions", &T::max_positions, "number of learned positions: the most tokens of a text",
              between(1, 1 << 24)},
        Field{"activation", &T::activation, "activation of the feed-forward net: relu or gelu"},
        Field{"self_attention", &T::self_attention,
              "attention spec; positions are counted from the first token of the text, which is <s>"},
        Field{
            "global", &T::global,
            "global tokens, which attend to the whole text and are attended to by all of it, besides the pattern: "
            "first, punctuation, [SEP], or a list of tokens separated by spaces"},
        Sized{
            "added_global", &T::added_global,
            "number of learned global tokens put in front of each text; positions of the pattern count them",
            between(0, 1024)},
        Field{
            "pooling", &T::pooling,
            "how the states become one vector: attention, mean, first (the state of <s>) or last (the state of "
            "the last </s>)"},
        Field{
            "score", &T::score,
            "pooling by attention: score of the learned query and a state: additive, gated, dot, scaled_dot, cosine(0.1), bilinear or concat"},
        Field{
            "selection", &T::selection,
            "pooling by attention: how scores become weights: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid or "
            "identity"}};
  }
};

// Parameters: embedding; positions where learned; segments [2, width], of pairs: of the first and the second text;
// global_tokens [added, width]; encoder...; attention... (nn::AttentionPooling); output...
class TransformerClassifier : public ClassificationModel {
 public:
  // Throws Error on a config that makes no sense.
  TransformerClassifier(const TransformerClassifierConfig& config, Rng& rng);
  data::TextForm form() const override { return data::TextForm::marked; }
  Var logits(const Sentences& texts, nn::Context& context) const override;
  void use_tokenizer(const data::Tokenizer& tokenizer) override;
  TextView view(std::span<const int32_t> ids) const override;

 private:
  Var embed(const Sentences& texts, nn::Context& context) const;
  Pattern pattern_of(const Sentences& texts, const std::vector<int64_t>& lengths) const;
  Var encode(const Sentences& texts, nn::Context& context) const;

  TransformerClassifierConfig config_;
  AttentionSpec spec_;
  data::GlobalTokens global_;
  Var embedding_, positions_, segments_, added_;  // undefined: without
  nn::TransformerEncoder encoder_;
  std::unique_ptr<nn::AttentionPooling> attention_;  // null: pooling without
  nn::Linear output_;
};

}  // namespace fovea::models
