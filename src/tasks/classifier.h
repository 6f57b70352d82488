// A text classifier: a model folder opened, from lines of text to labels.
//
// The folder holds config.json (with the labels), model.safetensors and the tokenizer, and nothing else is
// needed. Hugging Face's folders of BERT-family classifiers are read as they are, and written so.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/labelled_text.h"
#include "data/tokenizer.h"
#include "io/json.h"
#include "models/classification.h"
#include "tasks/prediction.h"

namespace fovea::tasks {

// A model with its tokenizer and labels. Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedClassifier {
  std::string model;  // its name in the registry
  Json config;
  std::vector<std::string> labels;  // empty where numbers are predicted
  data::LabelForm form = data::LabelForm::one;
  std::string label_separator = ",";  // between several labels of a text
  std::shared_ptr<const data::Tokenizer> tokenizer;
  data::TextEncoding encoding;
  std::unique_ptr<models::ClassificationModel> network;
  // Of a BERT-family encoder: the files its tokenizer came in, by name. Empty: the tokenizer writes its own.
  std::vector<std::pair<std::string, std::string>> tokenizer_files = {};
  nn::Prepared prepared = {};  // of a folder opened for use
};

// Opens a folder for use. compute: "float32" or "int8", whose products are made of eight-bit integers. Throws
// Error naming the file when something is missing, damaged or does not fit.
LoadedClassifier load_classifier(const std::filesystem::path& folder, const std::string& compute = "float32");
// Writes config.json, model.safetensors and the tokenizer, each atomically.
void save_classifier(const std::filesystem::path& folder, const LoadedClassifier& loaded);
// All but the weights.
void save_classifier_config(const std::filesystem::path& folder, const LoadedClassifier& loaded);

// A prediction for each text, in order; texts of similar length are processed together, `batch_tokens` at a
// time. A text's prediction does not depend on the other texts, nor on the number of threads.
std::vector<Prediction> classify(const LoadedClassifier& loaded, std::span<const std::string> texts,
                                 int64_t batch_tokens = 8192);
// The same of tokens. after_batch: called after each batch, on this thread, with the batch that was processed.
std::vector<Prediction> classify_ids(const models::ClassificationModel& network,
                                     const data::EncodedTexts& texts, int64_t batch_tokens = 8192,
                                     const std::function<void(const data::TextBatch&)>& after_batch = {});

// "one", "several" or "number" in config.json. Throws Error beginning with `where` on another name.
const char* name_of(data::LabelForm form);
data::LabelForm label_form_named(const std::string& name, const std::string& where);

}  // namespace fovea::tasks
