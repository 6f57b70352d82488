// BERT of Devlin et al. (2019) and its kin: DistilBERT (Sanh et al. 2019) and RoBERTa (Liu et al. 2019),
// which differ in how they begin and end, not in their layers.
//
// A text is read whole: word, place and kind of every token are added, layers of self-attention follow, and
// heads read what comes out: the first token for whole texts, every token for masked ones.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "io/json.h"
#include "models/translation.h"
#include "nn/projection.h"
#include "nn/transformer.h"

namespace fovea::models {

// The names are those of Hugging Face's config.json; DistilBERT's own names for them are read and written
// too.
struct BertConfig {
  std::string model_type = "bert";  // or "distilbert", "roberta"
  int64_t vocab_size = 30522, hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12;
  int64_t intermediate_size = 3072, max_position_embeddings = 512;
  int64_t type_vocab_size = 2;  // 0: tokens have no kinds
  std::optional<int64_t> pad_token_id = 0;
  std::string hidden_act = "gelu";  // or "gelu_new", "gelu_pytorch_tanh", "relu"
  float hidden_dropout_prob = 0.1f, attention_probs_dropout_prob = 0.1f;
  std::optional<float> classifier_dropout = {};  // empty: as hidden_dropout_prob
  float layer_norm_eps = 1e-12f, initializer_range = 0.02f;
  bool tie_word_embeddings = true;
  // How a classifier's labels are read: single_label_classification, multi_label_classification or regression;
  // empty: as the number of labels says.
  std::optional<std::string> problem_type = {};
  std::optional<bool> pairs = {};        // Fovea's own: texts were pairs in training
  std::vector<std::string> labels = {};  // of a classifier, in id2label; not among the fields

  static constexpr auto fields() {
    using T = BertConfig;
    return std::tuple{
        Field{"model_type", &T::model_type, "bert, distilbert or roberta"},
        Field{"vocab_size", &T::vocab_size, "tokens"},
        Field{"hidden_size", &T::hidden_size, "features of a token between layers"},
        Field{"num_hidden_layers", &T::num_hidden_layers, "layers"},
        Field{"num_attention_heads", &T::num_attention_heads, "attention heads of a layer"},
        Field{"intermediate_size", &T::intermediate_size, "features inside the feed-forward net"},
        Field{"max_position_embeddings", &T::max_position_embeddings, "rows of the table of places"},
        Field{"type_vocab_size", &T::type_vocab_size, "kinds of tokens: first and second text of a pair"},
        Field{"pad_token_id", &T::pad_token_id, "padding; RoBERTa counts places from the one after it"},
        Field{"hidden_act", &T::hidden_act, "gelu, gelu_new, gelu_pytorch_tanh or relu"},
        Field{"hidden_dropout_prob", &T::hidden_dropout_prob, "dropout rate on embeddings and sub-layers"},
        Field{"attention_probs_dropout_prob", &T::attention_probs_dropout_prob,
              "dropout rate on attention weights"},
        Field{"classifier_dropout", &T::classifier_dropout, "before the classifier"},
        Field{"layer_norm_eps", &T::layer_norm_eps, "added to a variance before its root is taken"},
        Field{"initializer_range", &T::initializer_range, "deviation that fresh weights are drawn with"},
        Field{"tie_word_embeddings", &T::tie_word_embeddings,
              "the masked-token head reads the table of words"},
        Field{"problem_type", &T::problem_type,
              "single_label_classification, multi_label_classification or regression"},
        Field{"pairs", &T::pairs, "texts are pairs"}};
  }

  // The row of the first token's place.
  int64_t first_position() const { return model_type == "roberta" ? pad_token_id.value_or(1) + 1 : 0; }
  // Tokens of the longest text.
  int64_t longest() const { return max_position_embeddings - first_position(); }
};

// From a config.json. Names that are not known are left alone, for such files hold many; a known one with a
// value that makes no sense, or that asks for what is not here, is an Error beginning with `where`.
BertConfig bert_config(const Json& json, const std::string& where);
// The same names and values back, as Hugging Face's loaders want them.
Json bert_config_json(const BertConfig& config);

// Throws Error on a name that hidden_act cannot have.
Activation bert_activation(const std::string& hidden_act);

// What reads the encoder's output.
struct BertHeads {
  bool pooler = false;     // a dense layer over the first token
  bool masked_lm = false;  // tokens for masked places
  int64_t labels = 0;      // classes of whole texts; implies the pooler
};

// Parameters: embeddings.word [vocab_size, E], .position, .type (unless there are no kinds), .norm...;
// encoder... as nn::TransformerEncoder names them; pooler.weight, .bias; masked_lm.dense..., .norm..., .bias
// [vocab_size], .output [vocab_size, E] unless it is the table of words; classifier.weight, .bias.
// Attention calls are named "encoder.0.self", "encoder.1.self", ...
class Bert : public nn::Module {
 public:
  // With fresh weights, drawn as the papers do. Throws Error on a config that makes no sense.
  Bert(const BertConfig& config, const BertHeads& heads, Rng& rng);

  // texts: tokens with their marks, packed. types: of each token the text of a pair it belongs to; empty: all
  // 0. -> [tokens, E]. Throws Error on a text longer than there are places. While the model is prepared
  // (nn::Prepared), a text's result does not depend on the texts beside it, nor on the number of threads.
  Var hidden(const Sentences& texts, std::span<const int32_t> types, nn::Context& context) const;
  // hidden: [tokens, E] -> [texts, E]: the first token's, through the pooler.
  Var pooled(const Var& hidden, std::span<const int64_t> lengths) const;
  // hidden: [tokens, E] -> [texts, labels].
  Var class_logits(const Var& hidden, std::span<const int64_t> lengths, nn::Context& context) const;
  // rows: [rows, E] of hidden -> [rows, vocab_size].
  Var token_logits(const Var& rows) const;

  // Draws the named parameters anew.
  void draw(std::span<const nn::NamedParameter> parameters, Rng& rng) const;

  class MaskedLm : public nn::Module {
   public:
    MaskedLm(const BertConfig& config, Rng& rng);
    nn::Linear dense;
    nn::LayerNorm norm;
    Var bias, output;  // output: undefined where it is the table of words
  };

  const BertConfig& config() const { return config_; }
  const BertHeads& heads() const { return heads_; }
  // Names the classifier's classes, one for each.
  void name_labels(std::vector<std::string> labels);
  // What a config file should say of a classifier's labels and texts.
  void describe_task(const std::optional<std::string>& problem_type, bool pairs);
  Var word_embedding, position_embedding, type_embedding;  // type_embedding: undefined without kinds
  nn::LayerNorm embedding_norm;
  nn::TransformerEncoder encoder;
  std::unique_ptr<nn::Linear> pooler, classifier;  // null: without
  std::unique_ptr<MaskedLm> masked_lm;

 private:
  Var dropped(const Var& x, float rate, nn::Context& context) const;
  Var first_tokens(const Var& hidden, std::span<const int64_t> lengths) const;
  Var through_pooler(const Var& first) const;

  BertConfig config_;
  BertHeads heads_;
  nn::Projection token_output_;  // of masked_lm
};

}  // namespace fovea::models
