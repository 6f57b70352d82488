// Training a ship detector with partitioned tasks: from scenes to a model folder.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/fields.h"
#include "io/json.h"
#include "models/registry/partitioners.h"
#include "tasks/partition.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions.
struct PartitionTraining {
  std::string model = "partition";
  int64_t size = 128;
  std::optional<int64_t> scenes = {};        // empty: 2000 with files.train kDrawnScenes
  std::optional<int64_t> valid_scenes = {};  // empty: 200 with files.valid kDrawnScenes
  int64_t batch = 16;
  double learning_rate = 2e-3;
  double weight_decay = 0.01;
  std::string schedule = "budget";
  double warmup = 0.05;
  bool turn = true;

  static constexpr auto fields() {
    using T = PartitionTraining;
    return std::tuple{
        Field{"model", &T::model, "partition, a convolutional network with a coarse and a fine branch"},
        Field{"size", &T::size, "side in pixels to which pictures are fitted; a multiple of 8"},
        Field{"scenes", &T::scenes, "scenes to draw with --train scenes"},
        Field{"valid_scenes", &T::valid_scenes, "scenes to draw with --valid scenes"},
        Field{"batch", &T::batch, "number of pictures in a batch"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"weight_decay", &T::weight_decay, kWeightDecayHelp},
        Field{"schedule", &T::schedule, kScheduleHelp},
        Field{"warmup", &T::warmup, kWarmupHelp},
        Field{"turn", &T::turn, "mirror and turn pictures by 90 degrees at random in training"}};
  }

  using Models = models::Partitioners;
  static constexpr const char* kTask = "partition";
  static constexpr std::array kFixed = {"model", "size", "scenes", "batch", "seed"};
  // The names that a text may have.
  static constexpr Choices kChoices[] = {{"schedule", kSchedules}};
  static constexpr std::pair<const char*, const char*> kDefaults[] = {
      {"scenes", "2000 with --train scenes"}, {"valid_scenes", "200 with --valid scenes"}};
  static train::TrainOptions options() { return {.clip_norm = 1, .log_every = 50, .validations = 10}; }
};

// Sizes by name: "tiny", "small" or "base". Sets what the preset names.
void apply_preset(const std::string& name, PartitionTraining& training, Json& model_settings);
void check_training(const PartitionTraining& training, const Json& model_settings);

struct PartitionFiles {
  std::string train, valid;  // "scenes" or a folder of HRSC2016's form; valid empty: no validation
  std::filesystem::path out;
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's F1 (see
// run_training). `command` goes into the model card.
TrainingOutcome train_partition(const PartitionFiles& files, const TrainSettings<PartitionTraining>& settings,
                                const std::string& command, RunObserver& observer,
                                const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
