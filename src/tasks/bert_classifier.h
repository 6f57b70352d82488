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
// An encoder with a fresh head, to be trained.
struct BertHead {
  std::vector<std::string> labels;  // none for a number
  data::LabelForm form = data::LabelForm::one;
  bool pairs = false;
  int64_t max_tokens = 0;  // most of a text; 0: what the model can read
};
ClassifierParts begin_bert_classifier(const std::filesystem::path& folder, const BertHead& head, Rng& rng);
// A checkpoint of a training: Fovea's own config, the encoder's among its settings. parts: what that config says of
// labels and texts.
ClassifierParts load_bert_checkpoint(const std::filesystem::path& folder, const Json& settings,
                                     ClassifierParts parts);

// A folder that `transformers` reads too: config.json, model.safetensors, and the tokenizer's own files.
void save_bert_classifier(const std::filesystem::path& folder, const ClassifierParts& parts);

}  // namespace fovea::tasks
