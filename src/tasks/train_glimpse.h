// Training a glimpse classifier: from labelled pictures, through new scenes in every epoch, to a model folder.
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
#include "models/registry/glimpse_classifiers.h"
#include "tasks/glimpse_classifier.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions. What is empty follows from the data, or from
// the kind of scene.
struct GlimpseTraining {
  std::string model = "ram";
  std::string scene = "plain";
  std::optional<int64_t> size = {};
  std::optional<int64_t> fragments = {};
  std::optional<std::string> clutter = {};
  std::optional<int64_t> batch = {};
  double learning_rate = 1e-3;
  double weight_decay = 0;
  std::string schedule = "budget";
  double warmup = 0.01;

  static constexpr auto fields() {
    using T = GlimpseTraining;
    return std::tuple{
        Field{
            "model", &T::model,
            "ram (chooses the next location, trained by REINFORCE) or soft (attention over a grid of glimpses)"},
        Field{
            "scene", &T::scene,
            "scene made from each picture: plain (the picture itself), translated (at a random place of a larger black "
            "scene) or cluttered (translated, with fragments of other pictures)"},
        Field{
            "size", &T::size,
            "side of a scene in pixels; plain: pictures of a folder or tar are resized to it, IDX files keep their size"},
        Field{"fragments", &T::fragments, "cluttered: number of 8 x 8 fragments of other pictures"},
        Field{
            "clutter", &T::clutter,
            "cluttered: blended (fragments are added over the picture) or behind (easier: the picture is pasted last)"},
        Field{"batch", &T::batch, "number of pictures in a batch"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"weight_decay", &T::weight_decay, kWeightDecayHelp},
        Field{"schedule", &T::schedule, kScheduleHelp},
        Field{"warmup", &T::warmup, kWarmupHelp}};
  }

  using Models = models::GlimpseClassifiers;
  static constexpr const char* kTask = "glimpse";
  static constexpr std::array kFixed = {"model", "scene", "size", "fragments", "clutter", "batch", "seed"};
  // The names that a text may have.
  static constexpr Choices kChoices[] = {
      {"scene", "plain, translated, cluttered"}, {"clutter", "blended, behind"}, {"schedule", kSchedules}};
  static constexpr std::pair<const char*, const char*> kDefaults[] = {
      {"size", "60; plain: 64 for a folder or tar, that of the pictures for IDX files"},
      {"fragments", "4 with --scene cluttered"},
      {"clutter", "blended with --scene cluttered"}};
  static train::TrainOptions options() { return {.clip_norm = 5, .log_every = 100, .validations = 20}; }
};

// Sizes by name: "tiny", "small" or "base". Sets what the preset names.
void apply_preset(const std::string& name, GlimpseTraining& training, Json& model_settings);
void check_training(const GlimpseTraining& training, const Json& model_settings);

struct GlimpseFiles {
  std::vector<std::string> train, valid;  // as data::read_pictures() has them; valid empty: no validation
  std::filesystem::path out;
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation's accuracy (see
// run_training), and in its sub-folder scenes/ ten scenes of the validation (or training) pictures to try it on.
// `command` goes into the model card.
TrainingOutcome train_glimpse(const GlimpseFiles& files, const TrainSettings<GlimpseTraining>& settings,
                              const std::string& command, RunObserver& observer,
                              const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
