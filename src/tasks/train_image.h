// Training an image classifier: from labelled pictures to a model folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "io/json.h"
#include "tasks/image_classifier.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions.
struct ImageTraining {
  std::string model = "resnet";
  int64_t size = 0;
  int64_t batch = 128;
  double learning_rate = 2e-3;
  double weight_decay = 0.01;
  int64_t warmup = 100;
  float smoothing = 0;
  int64_t shift = 2;
  bool flip = false;

  static constexpr auto fields() {
    using T = ImageTraining;
    return std::tuple{
        Field{"model", &T::model, "resnet, with attention as --gate says"},
        Field{"size", &T::size, "of a folder's pictures: side they are brought to; 0: 64"},
        Field{"batch", &T::batch, "pictures of a step"},
        Field{"learning_rate", &T::learning_rate, "peak, reached after the warm-up"},
        Field{"weight_decay", &T::weight_decay, "share of a weight taken off at each step, times the rate"},
        Field{"warmup", &T::warmup,
              "steps over which the learning rate rises; it then falls with the root of the step"},
        Field{"smoothing", &T::smoothing, "label smoothing"},
        Field{"shift", &T::shift, "pixels that a picture may be moved by in training, each way"},
        Field{"flip", &T::flip, "pictures may be mirrored in training: right for animals, wrong for digits"}};
  }
};

// Sizes by name: "tiny", "small" or "base". Sets what the preset names.
void apply_preset(const std::string& name, ImageTraining& training, Json& model_settings);

struct ImageFiles {
  std::vector<std::string> train, valid;  // as data::read_pictures() has them; valid empty: no validation
  std::filesystem::path out;
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's
// accuracy (see run_training). The run's curve is drawn in curve.svg. `command` goes into the model card.
TrainingOutcome train_image(const ImageFiles& files, const ImageTraining& training,
                            const Json& model_settings, const train::TrainOptions& options,
                            const std::string& command, RunObserver& observer,
                            const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
