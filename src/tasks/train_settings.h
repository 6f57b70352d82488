// The settings of a training as people give them: a preset, then a config file, then single values, each over
// the one before. One machinery for every task that can be trained.
//
// A Training (ClassifyTraining, ImageTraining, TranslateTraining) is a struct with fields, `model` among
// them, that has besides:
//   Models              the family of models/registry.h
//   kTask               its name
//   kChoices            the names that its texts may have
//   kPresets            the names of its sizes (optional: tiny, small and base)
//   kDefaultPreset      the one used if none is chosen (optional: small)
//   kFixed              the names of the settings that a run cannot change when it is resumed
//   options()           the task's own defaults of train::TrainOptions
//   apply_preset(preset, training, model_settings)   sets what the preset and training.model decide
//   check_training(training, model_settings)         throws Error on values out of range
#pragma once

#include <string>
#include <vector>

#include "io/json.h"
#include "tasks/setting.h"
#include "tasks/training_run.h"
#include "train/trainer.h"

namespace fovea::tasks {

// The settings that a caller gives.
struct TrainRequest {
  std::string preset = {};       // empty: the task's default
  Json file = Json::object();    // what a config file said, by field name
  std::string file_name = {};    // for messages
  Json values = Json::object();  // what was said besides, over the file
};

template <class Training>
struct TrainSettings {
  Training training = {};
  train::TrainOptions options = Training::options();
  Json model = Json::object();  // the model's own settings that differ from its defaults
};

template <class Training>
constexpr const char* default_preset() {
  if constexpr (requires { Training::kDefaultPreset; })
    return Training::kDefaultPreset;
  else
    return "small";
}

// All settings of the model and preset that the request names, with the values used when nothing else is
// said. Settings of other models are not among them.
template <class Training>
std::vector<Setting> settings_of(const TrainRequest& request = {});
// Every setting that any of the task's models takes, once; Setting::models says which do.
template <class Training>
std::vector<Setting> all_settings();

// Joins preset, file and values. Throws Error on unknown names, values out of range, and specs that cannot be
// used: nothing of this needs the data.
template <class Training>
TrainSettings<Training> settle(const TrainRequest& request);
// The part of settle() for settings made otherwise.
template <class Training>
void check_settings(const TrainSettings<Training>& settings);

// All settings as a config file. What follows from the data is null.
template <class Training>
Json settings_json(const TrainSettings<Training>& settings);

// What the folder of a run remembers of these settings, once they are fitted to the data. `examples` says for
// people how many there are.
template <class Training>
RunIdentity run_identity(const TrainSettings<Training>& settings, uint64_t data, std::string examples);

}  // namespace fovea::tasks
