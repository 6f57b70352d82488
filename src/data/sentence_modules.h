// The settings of a sentence-transformers folder: which model reads, and how its states become one
// vector.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fovea::data {

enum class Pooling { mean, cls, max };
// "mean", "cls" or "max"; throws Error for anything else.
Pooling pooling_named(const std::string& name);

// A dense layer behind the pooling: y = W x + b, then perhaps tanh.
struct DenseModule {
  std::filesystem::path
      folder;  // of its weights: linear.weight [out, in] and, with a bias, linear.bias [out]
  int64_t in = 0, out = 0;
  bool bias = true, tanh = true;
};

struct SentenceModules {
  std::filesystem::path model;  // the folder of the model itself
  Pooling pooling = Pooling::mean;
  std::vector<DenseModule> dense;  // one after the other, before the vector is normalised
  bool normalize = false;
  int64_t max_tokens = 0;  // of a text with its marks; 0: as the model has
  bool lowercase = false;  // before the tokenizer
  std::string prompt;      // put before every text
};

// From modules.json and what it names; of a folder without one, the defaults. Throws Error naming the file
// when it is damaged or asks for what is not here.
SentenceModules read_sentence_modules(const std::filesystem::path& folder);

}  // namespace fovea::data
