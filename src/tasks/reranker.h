// Reranking with a cross-encoder: an encoder of the BERT family that reads a query and a text together and gives them
// one score. From a Hugging Face or sentence-transformers folder, as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/json.h"
#include "tasks/encoder.h"

namespace fovea::tasks {

// What becomes of the single logit.
enum class ScoreActivation { identity, sigmoid };

// As sentence-transformers reads a config.json: sentence_transformers.activation_fn, the older
// sbert_ce_default_activation_function, or else sigmoid for one label. Throws Error, beginning with `where`, on
// another function.
ScoreActivation score_activation(const Json& config, const std::string& where);

struct RelevanceScores {
  std::vector<float> scores;  // one for each text
  std::vector<uint8_t> cut;   // whether the pair was longer than max_tokens
};

class Reranker {
 public:
  // Throws Error when the folder has no head of one label, or something is missing, damaged or does not fit.
  // compute: "float32" or "int8".
  Reranker(const std::filesystem::path& folder, const std::string& compute);

  // The same to the last bit for a text alone or beside others, on any number of threads.
  RelevanceScores score(const std::string& query, std::span<const std::string> texts,
                        int64_t batch_tokens = 2048) const;
  int64_t max_tokens() const { return parts_.modules.max_tokens; }

 private:
  EncoderParts parts_;
  ScoreActivation activation_;
  nn::Prepared prepared_;
};

}  // namespace fovea::tasks
