// What Hugging Face's files call the parameters of models::Bert.
#pragma once

#include <string>
#include <vector>

#include "models/bert.h"

namespace fovea::models {

// One of our parameters and those of a file that make it: one, or several whose rows stand one below the
// other (queries, keys and values).
struct BertName {
  std::string ours;
  std::vector<std::string> theirs;
  bool of_head = false;  // not under the encoder's own prefix
};

// All parameters of a model, in the order of the table.
std::vector<BertName> bert_names(const BertConfig& config, const BertHeads& heads);

// What comes before the encoder's names where a file holds heads too: "bert.".
std::string bert_prefix(const BertConfig& config);

// What a tensor may be called instead, best first: the name itself, and names of older files.
std::vector<std::string> bert_spellings(const std::string& name);

}  // namespace fovea::models
