// Classifiers on encoders of the BERT family: Hugging Face folders as they are, to be used, trained on, and
// written again.
#pragma once

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "tasks/classifier.h"

namespace fovea::tasks {

// What can be chosen of a pretrained encoder that is trained on; everything else is its own.
struct EncoderChoices {
  std::string global = "";
  int64_t added_global = 0;
  std::string random_blocks = "";

  static constexpr auto fields() {
    using T = EncoderChoices;
    return std::tuple{
        Field{
            "global", &T::global,
            "Longformer and BigBird: global tokens, which attend to the whole text and are attended to by all of it: "
            "none, first, punctuation, [SEP], or a list of tokens separated by spaces (default: as the folder says, or "
            "first for Longformer)"},
        Field{"added_global", &T::added_global,
              "Longformer and BigBird: number of learned global tokens put in front of each text"},
        Field{
            "random_blocks", &T::random_blocks,
            "BigBird: random blocks in training: paper (drawn, as published), hf-eval (block 0 instead, as in "
            "use) or none (default: as the folder says, or paper)"}};
  }
};
// Throws Error on a name that random_blocks cannot have, on a list of tokens without a word, and on a number of added
// tokens out of range.
void check_encoder_choices(const EncoderChoices& choices);

// What LoadedClassifier::model says of one.
inline constexpr const char* kBertModel = "bert";

// A folder saved with a head for labels (BertForSequenceClassification): config.json names them. Throws Error
// when there is none, or a file is missing, damaged or does not fit. For use alone, as open_encoder() has it.
LoadedClassifier load_bert_classifier(const std::filesystem::path& folder, const std::string& compute);
// An encoder with a fresh head, to be trained.
struct BertHead {
  std::vector<std::string> labels;  // none for a number
  data::LabelForm form = data::LabelForm::one;
  bool pairs = false;
  int64_t max_tokens = 0;  // most of a text; 0: what the model can read
};
LoadedClassifier begin_bert_classifier(const std::filesystem::path& folder, const BertHead& head,
                                       const EncoderChoices& choices, Rng& rng);
// A checkpoint of a training: Fovea's own config, the encoder's among its settings. loaded: what that config says of
// labels and texts.
LoadedClassifier load_bert_checkpoint(const std::filesystem::path& folder, const Json& settings,
                                      LoadedClassifier loaded);

// Longformer and BigBird: which tokens are global from now on. Throws Error for other models.
void choose_global(LoadedClassifier& loaded, const std::string& choice);

// A folder that `transformers` reads too: config.json, model.safetensors, and the tokenizer's own files.
void save_bert_classifier(const std::filesystem::path& folder, const LoadedClassifier& loaded);

}  // namespace fovea::tasks
