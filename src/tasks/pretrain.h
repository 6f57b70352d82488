// Pre-training an encoder of the BERT family: from plain text to a folder that `fovea fill`, `fovea train classify
// --from` and Hugging Face's libraries read.
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
#include "models/registry/encoders.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions.
struct PretrainTraining {
  std::string model = "bert";
  std::string from = {};
  std::optional<int64_t> vocabulary = {};
  bool lowercase = true;
  int64_t max_tokens = 128;
  double masked = 0.15;
  int64_t max_masked = 20;
  bool whole_words = false;
  double short_share = 0.1;
  int64_t passes = 5;
  int64_t batch = 64;
  double learning_rate = 5e-4;
  double weight_decay = 0.01;
  double warmup = 0.1;

  static constexpr auto fields() {
    using T = PretrainTraining;
    return std::tuple{
        Field{"model", &T::model, "bert"},
        Field{
            "from", &T::from,
            "folder of a BERT model to continue from, with its tokenizer, sizes and weights (default: random weights)"},
        Field{"vocabulary", &T::vocabulary, "number of WordPiece tokens to learn from the text"},
        Field{"lowercase", &T::lowercase, "convert text to lower case and strip accents"},
        Field{"max_tokens", &T::max_tokens,
              "maximum number of tokens of a pair, including [CLS] and both [SEP]"},
        Field{"masked", &T::masked, "share of the tokens that are masked and predicted"},
        Field{"max_masked", &T::max_masked, "maximum number of masked tokens in a pair"},
        Field{"whole_words", &T::whole_words, "mask all pieces of a word, or none"},
        Field{"short_share", &T::short_share, "share of pairs that are cut to a random shorter length"},
        Field{
            "passes", &T::passes,
            "how often the text is cut into pairs, each time differently; masks are drawn again at every step"},
        Field{"batch", &T::batch, "number of pairs in a batch"},
        Field{"learning_rate", &T::learning_rate,
              "learning rate after the warm-up; then it decays linearly to 0"},
        Field{"weight_decay", &T::weight_decay,
              "weight decay, multiplied by the learning rate; not applied to norms and biases"},
        Field{"warmup", &T::warmup, kWarmupHelp}};
  }

  using Models = models::Encoders;
  static constexpr const char* kTask = "pretrain";
  static constexpr std::array kFixed = {"model",       "from",       "vocabulary", "lowercase",
                                        "max_tokens",  "max_masked", "masked",     "whole_words",
                                        "short_share", "passes",     "batch",      "seed"};
  // What a folder to continue from brings with it.
  static constexpr std::array kFromFolder = {"model", "vocabulary", "lowercase"};
  static constexpr Choices kChoices[] = {{"model", "bert"}};
  static constexpr std::array kPresets = {"tiny", "mini", "small"};
  static train::TrainOptions options() { return {.clip_norm = 1, .log_every = 50, .validations = 10}; }
};

// The sizes of Turc et al. (2019): "tiny" (2 layers of 128), "mini" (4 of 256), "small" (4 of 512).
void apply_preset(const std::string& name, PretrainTraining& training, Json& model_settings);
void check_training(const PretrainTraining& training, const Json& model_settings);

struct PretrainFiles {
  std::vector<std::string> train,
      valid;  // a sentence on each line, blank lines between documents; plain or gzip
  std::filesystem::path out;
};

struct PretrainOutcome : TrainingOutcome {
  double next_accuracy = -1;  // of the weights kept, in per cent; -1 without validation
};

// Trains, or resumes, in files.out; leaves there a folder in Hugging Face's format (BertForPreTraining) with the best
// weights by the accuracy of masked tokens (see run_training). `command` goes into the model card.
PretrainOutcome pretrain(const PretrainFiles& files, const TrainSettings<PretrainTraining>& settings,
                         const std::string& command, RunObserver& observer,
                         const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
