// Reranking with a cross-encoder: an encoder of the BERT family that reads a query and a text together and gives them
// one score. From a Hugging Face or sentence-transformers folder, as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tasks/cross_encoder.h"
#include "tasks/encoder.h"

namespace fovea::tasks {

struct RelevanceScores {
  std::vector<float> scores;  // one for each text
  std::vector<uint8_t> cut;   // whether the pair was longer than max_tokens
};

// score() may be called by several threads at once.
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
  LoadedEncoder parts_;
  ScoreActivation activation_;
  nn::Prepared prepared_;
};

}  // namespace fovea::tasks
