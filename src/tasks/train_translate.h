// Training a translator: from two text files to a model folder.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "io/json.h"
#include "models/registry/translators.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"
#include "tasks/translator.h"
#include "train/trainer.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions. What is empty follows from the
// size of the data.
struct TranslateTraining {
  std::string model = "transformer";
  std::string from = {};
  std::string tokenizer = "bpe";
  std::optional<int64_t> vocabulary = {};
  bool joint = true;
  int64_t max_length = 200;
  std::optional<int64_t> batch_tokens = {};
  double learning_rate = 1e-3;
  std::string schedule = "budget";
  double warmup = 0.1;
  float smoothing = 0.1f;
  float teacher_forcing = 1;
  int64_t valid_sentences = 500;
  std::string tokenize = "13a";
  bool lowercase = false;
  bool skip_bad = false;

  static constexpr auto fields() {
    using T = TranslateTraining;
    return std::tuple{
        Field{"model", &T::model, "transformer, bahdanau, luong or rnn (no attention)"},
        Field{
            "from", &T::from,
            "folder of a translator to train on, instead of --model: MarianMT or OPUS-MT (Hugging Face format), or "
            "Fovea's own"},
        Field{"tokenizer", &T::tokenizer, kTokenizerHelp},
        Field{"vocabulary", &T::vocabulary, kVocabularyHelp},
        Field{"joint", &T::joint, "one vocabulary for both languages"},
        Field{"max_length", &T::max_length, "pairs with more tokens on a side are left out of training"},
        Field{"batch_tokens", &T::batch_tokens, "number of tokens in a batch, counted on the longer side"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"schedule", &T::schedule, kScheduleHelp},
        Field{"warmup", &T::warmup, kWarmupHelp},
        Field{"smoothing", &T::smoothing, kSmoothingHelp},
        Field{
            "teacher_forcing", &T::teacher_forcing,
            "recurrent models: share of the target's own words among those fed to the decoder in training; the others "
            "are its own predictions (scheduled sampling)"},
        Field{"valid_sentences", &T::valid_sentences,
              "number of sentences translated at each validation to compute BLEU"},
        Field{"tokenize", &T::tokenize, "tokenization used to compute BLEU: 13a, zh, char or none"},
        Field{"lowercase", &T::lowercase, "compute BLEU on lower-cased text"},
        Field{"skip_bad", &T::skip_bad, kSkipBadHelp}};
  }

  using Models = models::Translators;
  static constexpr const char* kTask = "translate";
  // What 20 000 to 100 000 pairs can teach: larger models learn less from them in the same time.
  static constexpr const char* kDefaultPreset = "tiny";
  static constexpr std::array kFixed = {"model", "from",       "tokenizer",    "vocabulary",
                                        "joint", "max_length", "batch_tokens", "seed"};
  // What a folder to train on brings with it.
  static constexpr std::array kFromFolder = {"model", "tokenizer", "vocabulary", "joint"};
  // The names that a text may have.
  static constexpr Choices kChoices[] = {
      {"tokenizer", "bpe, unigram, words"}, {"schedule", kSchedules}, {"tokenize", "13a, zh, char, none"}};
  static train::TrainOptions options() { return {.clip_norm = 1, .log_every = 50, .validations = 10}; }
};

// Sizes of training.model by name, with a learning rate that suits them: "tiny", "small" or "base". Sets what
// the preset names.
void apply_preset(const std::string& name, TranslateTraining& training, Json& model_settings);
void check_training(const TranslateTraining& training, const Json& model_settings);

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
// (see run_training). `command` goes into the model card.
TrainingOutcome train_translate(const TranslateFiles& files, const TrainSettings<TranslateTraining>& settings,
                                const std::string& command, TranslateObserver& observer,
                                const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
