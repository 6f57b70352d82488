// Training an image classifier: from labelled pictures to a model folder.
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
#include "models/registry/image_classifiers.h"
#include "tasks/image_classifier.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions. What is empty follows from the
// size of the data.
struct ImageTraining {
  std::string model = "resnet";
  int64_t size = 64;
  std::optional<int64_t> batch = {};
  std::string optimizer = "adamw";
  double learning_rate = 2e-3;
  double weight_decay = 0.01;
  std::string schedule = "budget";
  double warmup = 0.05;
  float smoothing = 0;
  int64_t shift = 2;
  bool flip = false;

  static constexpr auto fields() {
    using T = ImageTraining;
    return std::tuple{
        Field{
            "model", &T::model,
            "resnet (a residual network, with the attention that --gate chooses) or vit (a vision Transformer: "
            "self-attention over patches)"},
        Field{"size", &T::size,
              "side in pixels to which pictures of a folder or tar are resized; IDX files keep theirs"},
        Field{"batch", &T::batch, "number of pictures in a batch"},
        Field{"optimizer", &T::optimizer,
              "adamw, or sgd (momentum 0.9, Nesterov), which needs a larger learning rate, such as 0.1"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"weight_decay", &T::weight_decay,
              "weight decay: multiplied by the learning rate (adamw), or an L2 penalty (sgd)"},
        Field{
            "schedule", &T::schedule,
            "learning rate after the warm-up: budget (decays to 0 at the end of the run), one_cycle (rises from "
            "1/25 of the rate along a cosine, then falls to 0 along another; use --warmup 0.3), inverse_sqrt "
            "(decays as 1/sqrt(step)) or constant"},
        Field{"warmup", &T::warmup, kWarmupHelp},
        Field{"smoothing", &T::smoothing, kSmoothingHelp},
        Field{"shift", &T::shift, "largest random shift of a picture in training, in pixels"},
        Field{"flip", &T::flip, "mirror pictures at random in training: suits animals, but not digits"}};
  }

  using Models = models::ImageClassifiers;
  static constexpr const char* kTask = "image";
  static constexpr std::array kFixed = {"model", "size", "batch", "seed"};
  // The names that a text may have.
  static constexpr Choices kChoices[] = {{"optimizer", "adamw, sgd"},
                                         {"schedule", "budget, one_cycle, inverse_sqrt, constant"}};
  static train::TrainOptions options() { return {.clip_norm = 1, .log_every = 50, .validations = 10}; }
};

// Sizes by name: "tiny", "small" or "base". Sets what the preset names.
void apply_preset(const std::string& name, ImageTraining& training, Json& model_settings);
void check_training(const ImageTraining& training, const Json& model_settings);

struct ImageFiles {
  std::vector<std::string> train, valid;  // as data::read_pictures() has them; valid empty: no validation
  std::filesystem::path out;
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's
// accuracy (see run_training). `command` goes into the model card.
TrainingOutcome train_image(const ImageFiles& files, const TrainSettings<ImageTraining>& settings,
                            const std::string& command, RunObserver& observer,
                            const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
