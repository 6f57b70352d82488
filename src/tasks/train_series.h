// Training a model of number sequences: from tables over time or labelled cases to a model folder.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "base/fields.h"
#include "io/json.h"
#include "models/registry/series_models.h"
#include "tasks/series.h"
#include "tasks/setting.h"
#include "tasks/train_settings.h"
#include "tasks/training_run.h"

namespace fovea::tasks {

// Everything but files, the model's own settings and train::TrainOptions. What is empty follows from the
// data.
struct SeriesTraining {
  std::string model = "transformer";
  std::optional<int64_t> steps_in = {}, horizon = {};
  std::string target = {}, inputs = {};
  std::string time_column = {}, time_features = {};
  std::string split = {};
  std::string missing = "stop";
  std::optional<int64_t> batch = {};
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  std::string schedule = "budget";
  double warmup = 0.05;
  std::optional<float> smoothing = 0.0f;

  static constexpr auto fields() {
    using T = SeriesTraining;
    return std::tuple{
        Field{"model", &T::model, "transformer or lstm"},
        Field{"steps_in", &T::steps_in, "table: number of past steps that the model reads"},
        Field{"horizon", &T::horizon, "table: number of steps to forecast"},
        Field{"target", &T::target, "table: columns to forecast, separated by commas (default: all)"},
        Field{"inputs", &T::inputs,
              "table, --channels mixed: further columns to read, separated by commas (default: all)"},
        Field{"time_column", &T::time_column,
              "table: column of dates or times (default: the first column, if it contains any)"},
        Field{"time_features", &T::time_features,
              "table: features of the time of each step that the model reads, separated by commas: minute, "
              "hour, weekday, day, yearday, month"},
        Field{"split", &T::split,
              "table: parts of the --train file for training, validation and test, in rows "
              "(8640/2880/2880) or shares (0.7/0.1/0.2) (default: all rows for training)"},
        Field{
            "missing", &T::missing,
            "what to do with a missing value: stop (an error that names its place) or last (repeat the last "
            "known value)"},
        Field{"batch", &T::batch, "number of series in a batch"},
        Field{"learning_rate", &T::learning_rate, kLearningRateHelp},
        Field{"weight_decay", &T::weight_decay, kWeightDecayHelp},
        Field{"schedule", &T::schedule, kScheduleHelp},
        Field{"warmup", &T::warmup, kWarmupHelp},
        Field{"smoothing", &T::smoothing, "classes: label smoothing"}};
  }

  using Models = models::SeriesModels;
  static constexpr const char* kTask = "series";
  static constexpr std::array kFixed = {"model",   "steps_in",    "horizon",       "target",
                                        "inputs",  "time_column", "time_features", "split",
                                        "missing", "batch",       "seed"};
  static constexpr Choices kChoices[] = {{"schedule", kSchedules}, {"missing", "stop, last"}};
  static train::TrainOptions options() { return {.clip_norm = 1, .log_every = 50, .validations = 20}; }
};

// Sizes by name: "tiny", "small" or "base". Sets what the preset names.
void apply_preset(const std::string& name, SeriesTraining& training, Json& model_settings);
void check_training(const SeriesTraining& training, const Json& model_settings);

struct SeriesFiles {
  std::string train;       // a table (.csv, .tsv, plain or gzip), or cases (.ts)
  std::string valid = {};  // empty: no validation, or a part of the table as SeriesTraining::split says
  std::filesystem::path out;
};

struct SeriesOutcome : TrainingOutcome {
  SeriesGoal goal = SeriesGoal::forecast;
  std::string test = {};  // scores on the test part of a split; empty: there is none
};

// Trains, or resumes, in files.out; leaves there a model folder with the best weights by validation: the
// lowest mean squared error of standardised forecasts or numbers, the highest accuracy of labels (see
// run_training). `command` goes into the model card.
SeriesOutcome train_series(const SeriesFiles& files, const TrainSettings<SeriesTraining>& settings,
                           const std::string& command, RunObserver& observer,
                           const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
