// A translator nobody trained: small, made in an instant, and as hard to read as any other.
#pragma once

#include <string>
#include <vector>

#include "models/registry/translators.h"
#include "tasks/translator.h"

namespace fovea::tasks {

// Knows the words one ... six and 我 喜欢 食物; two layers of two heads.
inline LoadedTranslator untrained_translator(
    const std::string& tokenizer = "words", const std::string& model = "transformer",
    const Json& settings = Json{
        {"width", 16}, {"heads", 2}, {"hidden", 32}, {"encoder_layers", 2}, {"decoder_layers", 2}}) {
  const std::vector<std::string> lines{"one two three four five six", "three five two one six four",
                                       "我 喜欢 食物", "喜欢 食物 我"};
  const std::span<const std::string> texts[] = {lines};
  LoadedTranslator loaded;
  loaded.model = model;
  if (tokenizer == "words")
    loaded.tokenizers.source = data::count_words(texts);
  else
    loaded.tokenizers.source = data::train_sentencepiece(texts, {.type = tokenizer, .size = 300});
  loaded.tokenizers.target = loaded.tokenizers.source;
  loaded.config = models::model_config<models::Translators>(
      model, settings,
      models::vocabularies(loaded.tokenizers.source->size(), loaded.tokenizers.target->size()));
  Rng rng(7);
  loaded.network = models::make_model<models::Translators>(model, loaded.config, rng);
  return loaded;
}

}  // namespace fovea::tasks
