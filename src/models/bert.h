// BERT of Devlin et al. (2019) and its kin: DistilBERT (Sanh et al. 2019), RoBERTa (Liu et al. 2019) and
// XLM-RoBERTa (Conneau et al. 2020), which differ in how they begin and end, not in their layers; MPNet (Song et
// al. 2020), whose layers add a bias for the distance of two tokens; and Longformer and BigBird, which differ in what a
// token sees (models/long_attention.h).
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
#include "data/global_tokens.h"
#include "io/json.h"
#include "models/translation.h"
#include "nn/projection.h"
#include "nn/transformer.h"

namespace fovea::models {

// The names are those of Hugging Face's config.json; DistilBERT's own names for them are read and written
// too.
struct BertConfig {
  std::string model_type =
      "bert";  // or "distilbert", "roberta", "xlm-roberta", "mpnet", "longformer", "big_bird"
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
  std::optional<bool> pairs = {};               // Fovea's own: texts were pairs in training
  int64_t relative_attention_num_buckets = 32;  // MPNet
  // BigBird.
  std::string attention_type = "block_sparse";  // or "original_full"
  int64_t block_size = 64, num_random_blocks = 3;
  bool rescale_embeddings = false, use_bias = true;
  std::string random_blocks = "paper";  // or "hf-eval", "none"
  // Longformer and BigBird; "none" or as data::GlobalTokens has it. Empty: the first token for classifiers on
  // Longformer, none otherwise.
  std::string global_tokens = "";
  int64_t added_global_tokens = 0;  // Longformer and BigBird: learned global tokens in front of each text
  // Not among the fields:
  std::vector<int64_t> attention_window = {};  // Longformer: of each layer, both sides together
  std::vector<std::string> labels = {};        // of a classifier, in id2label

  static constexpr auto fields() {
    using T = BertConfig;
    return std::tuple{
        Field{"model_type", &T::model_type,
              "bert, distilbert, roberta, xlm-roberta, mpnet, longformer or big_bird"},
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
        Field{"pairs", &T::pairs, "texts are pairs"},
        Field{"relative_attention_num_buckets", &T::relative_attention_num_buckets,
              "classes of distances between two tokens"},
        Field{"attention_type", &T::attention_type, "block_sparse or original_full"},
        Field{"block_size", &T::block_size, "tokens of a block"},
        Field{"num_random_blocks", &T::num_random_blocks, "random blocks that a block of tokens sees"},
        Field{"rescale_embeddings", &T::rescale_embeddings, "word vectors times the root of their width"},
        Field{"use_bias", &T::use_bias, "biases on queries, keys and values"},
        Field{"random_blocks", &T::random_blocks,
              "paper (drawn in training; block 0 instead in use), hf-eval (always block 0) or none"},
        Field{"global_tokens", &T::global_tokens, "tokens that see all and are seen by all"},
        Field{"added_global_tokens", &T::added_global_tokens,
              "learned tokens in front of each text that see all and are seen by all"}};
  }

  // Longformer and BigBird: what a token sees is limited.
  bool is_long() const { return model_type == "longformer" || model_type == "big_bird"; }
  // Positions are counted from the padding token's id on.
  bool counts_from_pad() const {
    return model_type == "roberta" || model_type == "xlm-roberta" || model_type == "mpnet" ||
           model_type == "longformer";
  }

  // The row of the first token's place.
  int64_t first_position() const { return counts_from_pad() ? pad_token_id.value_or(1) + 1 : 0; }
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
  bool next_sentence =
      false;           // whether a pair's second text follows the first; implies the pooler; bert alone
  int64_t labels = 0;  // classes of whole texts; implies the pooler
};

// Parameters: embeddings.word [vocab_size, E], .position, .type (unless there are no kinds), .norm...;
// embeddings.global [added_global_tokens, E] where there are any: instead of word, place and kind;
// relative_bias [buckets, heads] of MPNet; encoder... as nn::TransformerEncoder names them; pooler.weight, .bias;
// masked_lm.dense..., .norm..., .bias [vocab_size], .output [vocab_size, E] unless it is the table of words;
// next_sentence.weight, .bias; classifier.weight, .bias.
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

  // The mean cross entropy of token_logits(rows) and the targets, without all logits in memory at once.
  Var masked_loss(const Var& rows, std::span<const int32_t> targets) const;
  // hidden: [tokens, E] -> [texts, 2]: the second text of a pair follows the first, or does not.
  Var next_logits(const Var& hidden, std::span<const int64_t> lengths) const;

  // Keeps a layer prepared whose matrices were dropped (WeightReader): the network can only be used then.
  void keep_prepared(nn::Prepared layer) { prepared_layers_.push_back(std::move(layer)); }

  // Draws the named parameters again.
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
  // Longformer and BigBird: which tokens are global from now on, "none" or as data::GlobalTokens has it. Throws Error for other
  // models, whose tokens all see each other, and on a choice that makes no sense.
  void choose_global(const std::string& choice, const data::Tokenizer& tokenizer);
  // Longformer and BigBird: puts `count` learned global tokens in front of each text from now on; they are drawn as a fresh
  // model's weights. A model that has as many already keeps them. Throws Error for other models and another number.
  void add_global_tokens(int64_t count, Rng& rng);
  // The places of one text's tokens that see the whole text and are seen by all of it, in use; none of other models,
  // where every token does. Added tokens are not counted.
  std::vector<int64_t> global_places(std::span<const int32_t> ids) const;
  // BigBird, in training: "paper", "hf-eval" or "none". Throws Error for other models.
  void choose_random_blocks(const std::string& choice);
  // What a config file should say of a classifier's labels and texts.
  void describe_task(const std::optional<std::string>& problem_type, bool pairs);
  Var word_embedding, position_embedding, type_embedding;  // type_embedding: undefined without kinds
  Var global_embedding;                                    // undefined without added tokens
  nn::LayerNorm embedding_norm;
  Var relative_bias;  // undefined but for MPNet
  nn::TransformerEncoder encoder;
  std::unique_ptr<nn::Linear> pooler, next_sentence, classifier;  // null: without
  std::unique_ptr<MaskedLm> masked_lm;

 private:
  Var dropped(const Var& x, float rate, nn::Context& context) const;
  Var first_tokens(const Var& hidden, std::span<const int64_t> lengths) const;
  Var through_pooler(const Var& first) const;
  Var masked_states(const Var& rows) const;

  BertConfig config_;
  BertHeads heads_;
  data::GlobalTokens global_;
  nn::Projection token_output_;  // of masked_lm
  std::vector<nn::Prepared> prepared_layers_;
};

}  // namespace fovea::models
