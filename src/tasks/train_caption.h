// Training a captioner: from captioned pictures and a frozen encoder to a model folder.
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
#include "models/registry/captioners.h"
#include "tasks/captioner.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions. What is empty follows from the
// size of the data.
struct CaptionTraining {
  std::string model = "show_attend_tell";
  std::string tokenizer = "words";
  int64_t min_count = 5;
  std::optional<int64_t> vocabulary = {};
  int64_t max_length = 40;
  int64_t picture_size = 224;
  int64_t blocks = 11;
  std::optional<int64_t> batch_words = {};
  double learning_rate = 1e-3;
  std::string schedule = "budget";
  double warmup = 0.05;
  float smoothing = 0;
  float penalty = 0.01f;
  float entropy = 0.002f;
  float soft_share = 0.5f;
  float baseline_decay = 0.9f;
  int64_t valid_pictures = 500;

  static constexpr auto fields() {
    using T = CaptionTraining;
    return std::tuple{
        Field{"model", &T::model, "show_attend_tell, an LSTM that attends to places of the picture"},
        Field{
            "tokenizer", &T::tokenizer,
            "words, or bpe or unigram (SentencePiece, learnt from the captions); captions are lower-cased and lose "
            "their punctuation first"},
        Field{"min_count", &T::min_count, "words: how often a word must occur in the captions to be learnt"},
        Field{"vocabulary", &T::vocabulary,
              "number of tokens to learn; for words: at most the most frequent ones, 0 for all"},
        Field{"max_length", &T::max_length, "captions with more tokens are left out of training"},
        Field{"picture_size", &T::picture_size,
              "side in pixels to which pictures are resized before the encoder sees them"},
        Field{"blocks", &T::blocks,
              "blocks of the encoder to use, 1 to 13; 11 gives 14 x 14 places for pictures of 224 pixels"},
        Field{"batch_words", &T::batch_words, "number of words in a batch"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"schedule", &T::schedule, kScheduleHelp},
        Field{"warmup", &T::warmup, kWarmupHelp},
        Field{"smoothing", &T::smoothing, kSmoothingHelp},
        Field{
            "penalty", &T::penalty,
            "weight of the doubly stochastic penalty, which favours attending to every place once; 0: none"},
        Field{"entropy", &T::entropy, "hard attention: weight of the entropy that keeps its draws varied"},
        Field{"soft_share", &T::soft_share,
              "hard attention: share of the training steps that use soft weights instead of a draw"},
        Field{"baseline_decay", &T::baseline_decay,
              "hard attention: decay of the moving average of the loss that draws are compared with"},
        Field{"valid_pictures", &T::valid_pictures,
              "number of pictures captioned at each validation to compute BLEU-4"}};
  }

  using Models = models::Captioners;
  static constexpr const char* kTask = "caption";
  static constexpr std::array kFixed = {"model",      "tokenizer",   "min_count",
                                        "vocabulary", "max_length",  "picture_size",
                                        "blocks",     "batch_words", "seed"};
  // The names that a text may have.
  static constexpr Choices kChoices[] = {{"tokenizer", "words, bpe, unigram"}, {"schedule", kSchedules}};
  static train::TrainOptions options() { return {.clip_norm = 1, .log_every = 50, .validations = 10}; }
};

// Sizes by name: "tiny", "small" or "base". Sets what the preset names.
void apply_preset(const std::string& name, CaptionTraining& training, Json& model_settings);
void check_training(const CaptionTraining& training, const Json& model_settings);

struct CaptionFiles {
  std::string images;                 // folder or tar
  std::vector<std::string> captions;  // as data::read_captions() has them
  std::string train,
      valid;            // lists of names; train empty: every captioned picture; valid empty: no validation
  std::string encoder;  // as read_encoder() has it
  std::filesystem::path features;  // file of features; empty: in `out`
  std::filesystem::path out;
};

// A picture of the validation set, as the model captions it now.
struct CaptionSample {
  std::string picture, reference, caption;
};

class CaptionObserver : public RunObserver {
 public:
  virtual void on_sample(const CaptionSample& sample) { (void)sample; }
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's BLEU-4
// (see run_training). `command` goes into the model card.
TrainingOutcome train_caption(const CaptionFiles& files, const TrainSettings<CaptionTraining>& settings,
                              const std::string& command, CaptionObserver& observer,
                              const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
