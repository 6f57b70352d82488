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

}  // namespace

Han::Han(const HanConfig& config, Rng& rng)
    : config_(checked(config)),
      embedding_(add_parameter("embedding", nn::normal({config.vocabulary, config.embedding}, 0, 0.1f, rng))),
      words_({.input = config.embedding, .hidden = config.width, .bidirectional = true}, rng),
      sentences_({.input = 2 * config.width, .hidden = config.width, .bidirectional = true}, rng),
      word_attention_(
          {.width = 2 * config.width, .hidden = config.attention_width, .selection = config.selection}, rng),
      sentence_attention_(
          {.width = 2 * config.width, .hidden = config.attention_width, .selection = config.selection}, rng),
      output_(2 * config.width, config.classes, rng) {
  add_child("words", words_);
  add_child("word_attention", word_attention_);
  add_child("sentences", sentences_);
  add_child("sentence_attention", sentence_attention_);
  add_child("output", output_);
}

Var Han::logits(const Sentences& texts, nn::Context& context) const {
  const data::SentenceLengths lengths = data::sentence_lengths(texts.ids, texts.lengths);
  const Var x = dropped(embedding(embedding_, texts.ids), config_.dropout, context);
  const Var read = words_(x, lengths.tokens, context).out;
  context.rows_of_example.assign(lengths.sentences.begin(), lengths.sentences.end());
  const Var sentences = word_attention_(read, lengths.tokens, context);
  const Var passed = sentences_(dropped(sentences, config_.dropout, context), lengths.sentences, context).out;
  context.rows_of_example.assign(texts.lengths.size(), 1);
  const Var whole = sentence_attention_(passed, lengths.sentences, context, nn::PoolingLevel::sentences);
  return output_(dropped(whole, config_.dropout, context));
}

}  // namespace fovea::models
