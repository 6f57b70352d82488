// Training a classifier of clips and bags: from list files, folders of frames, or labelled pictures of which bags are
// made, to a model folder.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "io/json.h"
#include "models/registry/clip_classifiers.h"
#include "tasks/clip_classifier.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions. What is empty follows from the data, or does
// not apply to it.
struct ClipTraining {
  std::string model = "lenet";
  std::optional<std::string> make = {};
  std::optional<int64_t> clips = {}, test_clips = {};
  std::optional<std::string> target = {};
  std::optional<int64_t> size = 28;
  std::optional<bool> grey = false;
  std::optional<int64_t> batch = {};
  double learning_rate = 1e-3;
  double weight_decay = 1e-4;
  std::string schedule = "budget";
  double warmup = 0.02;

  static constexpr auto fields() {
    using T = ClipTraining;
    return std::tuple{
        Field{"model", &T::model,
              "lenet, a small convolutional network for every frame, with attention over frames"},
        Field{
            "make", &T::make,
            "IDX files: what to make from their pictures: bags (positive if at least one picture is of the class "
            "--target) or clips (one whole picture at a random place among frames of fragments)"},
        Field{"clips", &T::clips, "IDX files: number of bags or clips made for training"},
        Field{"test_clips", &T::test_clips,
              "IDX files: number of bags or clips made for validation and tests"},
        Field{"target", &T::target, "bags: class of the pictures that make a bag positive"},
        Field{"size", &T::size,
              "side in pixels to which pictures of files are resized; IDX files keep theirs"},
        Field{"grey", &T::grey, "read pictures of files in grey instead of colour"},
        Field{"batch", &T::batch, "number of clips in a batch"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"weight_decay", &T::weight_decay, kWeightDecayHelp},
        Field{"schedule", &T::schedule, kScheduleHelp},
        Field{"warmup", &T::warmup, kWarmupHelp}};
  }

  using Models = models::ClipClassifiers;
  static constexpr const char* kTask = "clip";
  static constexpr std::array kFixed = {"model", "make", "clips", "target", "size", "grey", "batch", "seed"};
  // The names that a text may have.
  static constexpr Choices kChoices[] = {{"make", "bags, clips"}, {"schedule", kSchedules}};
  static constexpr std::pair<const char*, const char*> kDefaults[] = {{"make", "bags for IDX files"},
                                                                      {"clips", "200 for IDX files"},
                                                                      {"test_clips", "1000 for IDX files"},
                                                                      {"target", "9 with --make bags"}};
  static train::TrainOptions options() { return {.clip_norm = 5, .log_every = 50, .validations = 10}; }
};

// Sizes by name: "tiny", "small" or "base". Sets what the preset names.
void apply_preset(const std::string& name, ClipTraining& training, Json& model_settings);
void check_training(const ClipTraining& training, const Json& model_settings);

struct ClipFiles {
  // A list file, a folder of classes with a folder of frames for each clip, or two IDX files; valid empty: no
  // validation.
  std::vector<std::string> train, valid;
  std::filesystem::path out;
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's accuracy (see
// run_training), and in its sub-folder clips/ a few clips of the validation (or training) data to try it on. `command`
// goes into the model card.
TrainingOutcome train_clip(const ClipFiles& files, const TrainSettings<ClipTraining>& settings,
                           const std::string& command, RunObserver& observer,
                           const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
