#include "models/han.h"

#include "autograd/ops.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

const HanConfig& checked(const HanConfig& c) {
  check_ranges(c, "han");
  check_classes({"han", c.vocabulary, c.classes});
  return c;
}

nn::AttentionPoolingOptions pooling(const HanConfig& c) {
  return {.width = 2 * c.width, .score = c.score, .hidden = c.attention_width, .selection = c.selection};
}

}  // namespace

Han::Han(const HanConfig& config, Rng& rng)
    : config_(checked(config)),
      embedding_(add_parameter("embedding", nn::normal({config.vocabulary, config.embedding}, 0, 0.1f, rng))),
      words_({.input = config.embedding, .hidden = config.width, .bidirectional = true}, rng),
      sentences_({.input = 2 * config.width, .hidden = config.width, .bidirectional = true}, rng),
      word_attention_(pooling(config), rng),
      sentence_attention_(pooling(config), rng),
      output_(2 * config.width, config.classes, rng) {
  add_child("words", words_);
  add_child("word_attention", word_attention_);
  add_child("sentences", sentences_);
  add_child("sentence_attention", sentence_attention_);
  if (config.pairs) {
    pair_ = std::make_unique<PairFeatures>(2 * config.width, rng);
    add_child("pair", *pair_);
  }
  add_child("output", output_);
}

Var Han::logits(const Sentences& texts, nn::Context& context) const {
  // A pair is two texts here, each of its own sentences.
  const int64_t texts_each = pair_ ? 2 : 1;
  const data::SentenceLengths lengths = data::sentence_lengths(texts.ids, texts.single_lengths());
  const Var x = dropped(embedding(embedding_, texts.ids), config_.dropout, context);
  const Var read = words_(x, lengths.tokens, context).out;
  context.rows_of_example.clear();
  for (size_t i = 0; i < lengths.sentences.size(); i += static_cast<size_t>(texts_each))
    context.rows_of_example.push_back(lengths.sentences[i] + (pair_ ? lengths.sentences[i + 1] : 0));
  const Var sentences = word_attention_(read, lengths.tokens, context);
  const Var passed = sentences_(dropped(sentences, config_.dropout, context), lengths.sentences, context).out;
  context.rows_of_example.assign(texts.lengths.size(), texts_each);
  Var whole = sentence_attention_(passed, lengths.sentences, context, nn::PoolingLevel::sentences);
  if (pair_) whole = (*pair_)(dropped(whole, config_.dropout, context));
  return output_(dropped(whole, config_.dropout, context));
}

}  // namespace fovea::models
