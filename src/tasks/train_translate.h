// Training a translator: from two text files to a model folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "io/json.h"
#include "tasks/training_run.h"
#include "tasks/translator.h"
#include "train/trainer.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions.
struct TranslateTraining {
  std::string model = "transformer";
  std::string tokenizer = "bpe";
  int64_t vocabulary = 8000;
  bool joint = true;
  int64_t max_length = 200;
  int64_t batch_tokens = 4096;
  double learning_rate = 1e-3;
  int64_t warmup = 2000;
  float smoothing = 0.1f;
  int64_t valid_sentences = 500;
  std::string tokenize = "13a";
  bool lowercase = false;
  bool skip_bad = false;

  static constexpr auto fields() {
    using T = TranslateTraining;
    return std::tuple{
        Field{"model", &T::model, "transformer, bahdanau, luong or rnn (no attention)"},
        Field{"tokenizer", &T::tokenizer,
              "bpe or unigram (SentencePiece, learnt from the training text), or words"},
        Field{"vocabulary", &T::vocabulary, "tokens to learn; words: the most frequent ones, 0 for all"},
        Field{"joint", &T::joint, "one vocabulary for both languages"},
        Field{"max_length", &T::max_length, "pairs with more tokens on a side are left out of training"},
        Field{"batch_tokens", &T::batch_tokens, "tokens of a batch, on the longer side"},
        Field{"learning_rate", &T::learning_rate, "peak, reached after the warm-up"},
        Field{"warmup", &T::warmup,
              "steps over which the learning rate rises; it then falls with the root of the step"},
        Field{"smoothing", &T::smoothing, "label smoothing"},
        Field{"valid_sentences", &T::valid_sentences, "sentences translated at a validation, for BLEU"},
        Field{"tokenize", &T::tokenize, "of BLEU: 13a, zh, char or none"},
        Field{"lowercase", &T::lowercase, "BLEU without case"},
        Field{"skip_bad", &T::skip_bad, "drop and count unusable lines instead of stopping at the first"}};
  }
};

// Sizes of training.model by name, with a learning rate that suits them: "tiny", "small" or "base". Sets what
// the preset names.
void apply_preset(const std::string& name, TranslateTraining& training, Json& model_settings);

struct TranslateFiles {
  std::string train_source, train_target;  // train_target empty: one tab-separated file
  std::string valid_source, valid_target;  // both empty: no validation
  std::filesystem::path out;
};

// A sentence of the validation set, as the model translates it now.
struct TranslationSample {
  std::string source, reference, translation;
};

class TranslateObserver : public RunObserver {
 public:
  virtual void on_sample(const TranslationSample& sample) { (void)sample; }
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's BLEU
// (see run_training). The run's curve is drawn in curve.svg. `command` goes into the model card.
TrainingOutcome train_translate(const TranslateFiles& files, const TranslateTraining& training,
                                const Json& model_settings, const train::TrainOptions& options,
                                const std::string& command, TranslateObserver& observer,
                                const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
