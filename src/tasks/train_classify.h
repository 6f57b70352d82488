// Training a text classifier: from a file of labelled texts to a model folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <tuple>

#include "base/fields.h"
#include "io/json.h"
#include "tasks/classifier.h"
#include "tasks/training_run.h"
#include "train/trainer.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions.
struct ClassifyTraining {
  std::string model = "lstm";
  std::string from = {};
  std::string tokenizer = "bpe";
  int64_t vocabulary = 8000;
  bool lowercase = true;
  int64_t max_length = 512;
  int64_t batch_tokens = 8192;
  double learning_rate = 1e-3;
  int64_t warmup = 200;
  float smoothing = 0;
  std::string label_column = {}, text_column = {};
  bool skip_bad = false;

  static constexpr auto fields() {
    using T = ClassifyTraining;
    return std::tuple{
        Field{"model", &T::model, "lstm (with attention), han (hierarchical attention) or transformer"},
        Field{"from", &T::from,
              "instead of a model and a tokenizer: folder of a BERT-family encoder (Hugging Face's) to train "
              "on"},
        Field{"tokenizer", &T::tokenizer,
              "bpe or unigram (SentencePiece, learnt from the training text), or words (between spaces)"},
        Field{"vocabulary", &T::vocabulary, "tokens to learn; words: the most frequent ones, 0 for all"},
        Field{"lowercase", &T::lowercase, "upper and lower case are one"},
        Field{"max_length", &T::max_length, "tokens after that many are not read; 0: all are"},
        Field{"batch_tokens", &T::batch_tokens, "tokens of a batch"},
        Field{"learning_rate", &T::learning_rate, "peak, reached after the warm-up"},
        Field{
            "warmup", &T::warmup,
            "steps over which the learning rate rises; it then falls with the root of the step (with --from, "
            "along a cosine to 0 at --steps)"},
        Field{"smoothing", &T::smoothing, "label smoothing"},
        Field{"label_column", &T::label_column, "name or number (from 1) of the labels' column"},
        Field{"text_column", &T::text_column, "name or number (from 1) of the texts' column"},
        Field{"skip_bad", &T::skip_bad, "drop and count unusable lines instead of stopping at the first"}};
  }
};

// Sizes of training.model by name, with a learning rate that suits them: "tiny", "small" or "base". Sets what
// the preset names.
void apply_preset(const std::string& name, ClassifyTraining& training, Json& model_settings);

struct ClassifyFiles {
  std::string train, valid;  // valid empty: no validation
  std::filesystem::path out;
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's
// accuracy (see run_training). The run's curve is drawn in curve.svg. `command` goes into the model card.
TrainingOutcome train_classify(const ClassifyFiles& files, const ClassifyTraining& training,
                               const Json& model_settings, const train::TrainOptions& options,
                               const std::string& command, RunObserver& observer,
                               const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
