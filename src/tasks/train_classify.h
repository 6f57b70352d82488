// Training a text classifier: from a file of labelled texts to a model folder.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "base/fields.h"
#include "io/json.h"
#include "models/registry/classifiers.h"
#include "tasks/classifier.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"
#include "train/trainer.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions. What is empty follows from the
// size of the data.
struct ClassifyTraining {
  std::string model = "lstm";
  std::string from = {};
  std::optional<std::string> tokenizer = {};
  std::optional<int64_t> vocabulary = {};
  bool lowercase = true;
  int64_t max_length = 512;
  std::optional<int64_t> batch_tokens = {};
  double learning_rate = 1e-3;
  std::string schedule = "budget";
  double warmup = 0.05;
  float smoothing = 0;
  std::optional<float> word_dropout = {};
  std::string task = "classification";
  std::optional<std::string> label_separator = ",";
  bool pairs = false;
  std::string label_column = {}, text_column = {}, pair_column = {};
  bool skip_bad = false;

  static constexpr auto fields() {
    using T = ClassifyTraining;
    return std::tuple{
        Field{"model", &T::model, "lstm (with attention), han (hierarchical attention) or transformer"},
        Field{"from", &T::from,
              "folder of a pretrained BERT-family encoder (Hugging Face format) to train on, instead of "
              "--model"},
        Field{"tokenizer", &T::tokenizer, kTokenizerHelp},
        Field{"vocabulary", &T::vocabulary, kVocabularyHelp},
        Field{"lowercase", &T::lowercase, "convert texts to lower case"},
        Field{"max_length", &T::max_length, "maximum number of tokens read from a text; 0: all"},
        Field{"batch_tokens", &T::batch_tokens, "number of tokens in a batch"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"schedule", &T::schedule, kScheduleHelp},
        Field{"warmup", &T::warmup, kWarmupHelp},
        Field{"smoothing", &T::smoothing, kSmoothingHelp},
        Field{"word_dropout", &T::word_dropout,
              "share of tokens replaced by <unk> in training, against overfitting"},
        Field{
            "task", &T::task,
            "what to predict: classification (one label a text), multi_label (any number of labels a text) or "
            "regression (a number)"},
        Field{"label_separator", &T::label_separator, "multi_label: separator between the labels of a text"},
        Field{"pairs", &T::pairs, "each row has a pair of texts"},
        Field{
            "label_column", &T::label_column,
            "name or number (from 1) of the column with the labels (default: found by its name, else by its content)"},
        Field{
            "text_column", &T::text_column,
            "name or number (from 1) of the column with the texts (default: found by its name, else by its content)"},
        Field{
            "pair_column", &T::pair_column,
            "pairs: name or number (from 1) of the column with the second texts (default: found by its name, else by its content)"},
        Field{"skip_bad", &T::skip_bad, kSkipBadHelp}};
  }

  using Models = models::Classifiers;
  static constexpr const char* kTask = "classify";
  static constexpr std::array kFixed = {"model",     "from",       "tokenizer",      "vocabulary",
                                        "lowercase", "max_length", "batch_tokens",   "seed",
                                        "task",      "pairs",      "label_separator"};
  // What a folder to train on brings with it.
  static constexpr std::array kFromFolder = {"model", "tokenizer", "vocabulary", "lowercase"};
  // The names that a text may have.
  static constexpr Choices kChoices[] = {{"task", "classification, multi_label, regression"},
                                         {"tokenizer", "bpe, unigram, words"},
                                         {"schedule", kSchedules}};
  static train::TrainOptions options() { return {.clip_norm = 1, .log_every = 50, .validations = 10}; }
};

// Sizes of training.model by name, with a learning rate that suits them: "tiny", "small" or "base". Sets what
// the preset names.
void apply_preset(const std::string& name, ClassifyTraining& training, Json& model_settings);
void check_training(const ClassifyTraining& training, const Json& model_settings);

// How the labels are read that `training.task` predicts.
data::LabelForm label_form(const ClassifyTraining& training);

struct ClassifyFiles {
  std::string train, valid;  // valid empty: no validation
  std::filesystem::path out;
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's
// accuracy, micro F1 or correlation (see run_training and validation_of). `command` goes into the model card.
TrainingOutcome train_classify(const ClassifyFiles& files, const TrainSettings<ClassifyTraining>& settings,
                               const std::string& command, RunObserver& observer,
                               const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
