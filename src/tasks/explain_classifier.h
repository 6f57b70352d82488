// Showing what a text classifier attends to: from a model folder and a text to shaded words, pictures and a page.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "explain/attention_record.h"
#include "explain/text_map.h"
#include "tasks/classifier.h"
#include "tasks/explain.h"

namespace fovea::tasks {

struct ClassifierExplanation {
  std::string text;
  int64_t cut_to = 0;  // tokens read, where the text has more; 0: all were read
  Prediction prediction;
  std::vector<std::string> labels;
  // What each word weighs in the model's sum of the text; of a model that has sentences, within its sentence.
  // Where a Transformer reads its first token alone, what reaches that token through all layers (rollout).
  TextMap words;
  // The share of the words that carry 90 % of the weight, the largest first.
  double words_for_90 = 0;
  // Places of the global tokens among the tokens of record.source; the first `added` tokens there are learned ones
  // that are in front of the text.
  std::vector<int64_t> global = {};
  int64_t added = 0;
  // Every layer and head of a Transformer, over the text as source; without layers for other models and for texts of
  // more than kMostExplainedTokens.
  AttentionRecord record;
  bool has_layers = false;  // a Transformer, whether or not record has its layers
};

// A Transformer's heads are only kept for texts of at most this many tokens. Words have weights in every text.
inline constexpr int64_t kMostExplainedTokens = 1024;
// Of a longer text, rollout is followed for the row that is read alone: with so many weights in memory at a time, by
// as many passes of the model as that takes.
inline constexpr int64_t kMostRolloutWeights = int64_t{1} << 27;

// The share of all words that carry 90 % of the weight (of its size, where weights have signs), the largest first.
double words_carrying_90_percent(const TextMap& words);

// classify_ids, and for each text of a model with attention pooling the share of its words that carry 90 % of the
// weight, as a mean over texts; empty for other models.
struct WeighedPredictions {
  std::vector<Prediction> predictions;
  std::optional<double> words_for_90;
};
WeighedPredictions classify_weighed(const LoadedClassifier& loaded, const data::EncodedTexts& texts,
                                    int64_t batch_tokens);

// For tests: smaller limits.
struct ExplainLimits {
  int64_t tokens = kMostExplainedTokens, rollout_weights = kMostRolloutWeights;
};
// Throws Error for an empty text, and where a model shows no attention (an LSTM that keeps its last state).
ClassifierExplanation explain_classifier(const LoadedClassifier& loaded, const std::string& text,
                                         const ExplainLimits& limits = {});

// The file's bytes, by its ending: .png, .svg, .pdf (the shaded text), .html (the same with probabilities),
// .json (everything), .txt (a word and its weight a line, and "unknown" where the vocabulary lacks the word).
// With options.kind, .png, .svg, .pdf and .html show the heads of a Transformer instead.
std::string explain_classifier_file(const ClassifierExplanation& explanation, const ExplainOptions& options,
                                    const std::filesystem::path& path);
// Label, probability and shaded words (with options.kind, the map of a Transformer's heads), for a terminal of
// `columns` columns.
std::string explain_classifier_text(const ClassifierExplanation& explanation,
                                    const ExplainOptions& options = {}, size_t columns = 100);

}  // namespace fovea::tasks
