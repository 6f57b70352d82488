// Classifiers on encoders of the BERT family: Hugging Face folders as they are, to be used, trained on, and
// written again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/classifier.h"

namespace fovea::tasks {

// What ClassifierParts::model says of one.
inline constexpr const char* kBertModel = "bert";

// A folder saved with a head for labels (BertForSequenceClassification): config.json names them. Throws Error
// when there is none, or a file is missing, damaged or does not fit.
ClassifierParts load_bert_classifier(const std::filesystem::path& folder);
// An encoder with a fresh head for `labels`, to be trained. max_tokens: most of a text; 0: what the model can
// read.
ClassifierParts begin_bert_classifier(const std::filesystem::path& folder, std::vector<std::string> labels,
                                      int64_t max_tokens, Rng& rng);
// A checkpoint of a training: Fovea's own config, the encoder's among its settings.
ClassifierParts load_bert_checkpoint(const std::filesystem::path& folder, const Json& settings,
                                     std::vector<std::string> labels, int64_t max_tokens);

// A folder that `transformers` reads too: config.json, model.safetensors, and the tokenizer's own files.
void save_bert_classifier(const std::filesystem::path& folder, const ClassifierParts& parts);

}  // namespace fovea::tasks
