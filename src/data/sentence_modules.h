// The settings of a sentence-transformers folder: which model reads, and how its states become one
// vector.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fovea::data {

enum class Pooling { mean, cls, max };
// "mean", "cls" or "max"; throws Error for anything else.
Pooling pooling_named(const std::string& name);

struct SentenceModules {
  std::filesystem::path model;  // the folder of the model itself
  Pooling pooling = Pooling::mean;
  bool normalize = false;
  int64_t max_tokens = 0;  // of a text with its marks; 0: as the model has
  bool lowercase = false;  // before the tokenizer
  std::string prompt;      // put before every text
};

// From modules.json and what it names; of a folder without one, the defaults. Throws Error naming the file
// when it is damaged or asks for what is not here.
SentenceModules read_sentence_modules(const std::filesystem::path& folder);

}  // namespace fovea::data
