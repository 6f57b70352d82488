// A BERT nobody trained, as a Hugging Face folder: small, made in an instant.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/rng.h"
#include "io/file.h"
#include "io/json.h"
#include "models/bert_folder.h"

namespace fovea::tasks {

inline const std::vector<std::string>& encoder_vocabulary() {
  static const std::vector<std::string> tokens{
      "[PAD]",  "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one",   "two", "three", "four", "five", "six",
      "##teen", "##ty",  "##ly",  "like",  "food",   "paris", "is",  "the",   "我",   "喜",   "欢",
      ".",      ",",     "a",     "b",     "##a",    "##b",   "One", "café",  "cafe", "[X]"};
  return tokens;
}

inline std::string encoder_vocabulary_file() {
  std::string text;
  for (const std::string& token : encoder_vocabulary()) text += token + "\n";
  return text;
}

inline models::BertConfig untrained_encoder_config(const std::string& type = "bert") {
  models::BertConfig config;
  config.model_type = type;
  config.vocab_size = 64;  // more rows than tokens: filled up, as some are
  config.hidden_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.intermediate_size = 40;
  config.max_position_embeddings = 40;
  config.type_vocab_size = type == "distilbert" ? 0 : 2;
  config.initializer_range = 0.3f;
  return config;
}

// Writes config.json, model.safetensors and vocab.txt.
inline void write_untrained_encoder(const std::filesystem::path& folder,
                                    const models::BertHeads& heads = {.masked_lm = true},
                                    const std::string& type = "bert") {
  Rng rng(5);
  const models::Bert network(untrained_encoder_config(type), heads, rng);
  models::save_bert(folder, network);
  write_atomically(folder / "vocab.txt", encoder_vocabulary_file());
}

}  // namespace fovea::tasks
