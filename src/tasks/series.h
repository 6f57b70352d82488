// A model of number sequences: a model folder opened, from rows or cases to forecasts, labels or numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/series_cases.h"
#include "data/series_table.h"
#include "io/json.h"
#include "models/series.h"
#include "tasks/prediction.h"

namespace fovea::tasks {

enum class SeriesGoal { forecast, classify, regress };
// "forecast", "classify", "regress": in config.json.
std::string_view name_of(SeriesGoal goal);

// Several threads may use one that was opened for use at once, as long as none changes it.
struct LoadedSeriesModel {
  std::string model;  // its name in the registry
  Json config;
  SeriesGoal goal = SeriesGoal::forecast;
  // What the network reads, the columns to forecast first; of cases, "feature 1", "feature 2"...
  std::vector<std::string> columns;
  std::vector<float> mean, deviation;  // of each column, in the training part
  data::Missing missing = data::Missing::stop;
  // Of a forecast.
  int64_t targets = 0, steps_in = 0, horizon = 0;
  std::string time_column = {};
  std::vector<std::string> time_features = {};
  // Of cases.
  std::vector<std::string> labels = {};
  float target_mean = 0, target_deviation = 1;  // of the numbers of a regression

  std::unique_ptr<models::SeriesModel> network;
  nn::Prepared prepared = {};  // of a folder opened for use
};

// Opens a folder for use. compute: "float32" or "int8". Throws Error naming the file when something is missing,
// damaged or does not fit.
LoadedSeriesModel load_series(const std::filesystem::path& folder, const std::string& compute = "float32");
// Writes config.json and model.safetensors, each atomically.
void save_series(const std::filesystem::path& folder, const LoadedSeriesModel& loaded);
// All but the weights.
void save_series_config(const std::filesystem::path& folder, const LoadedSeriesModel& loaded);

// How a table is read for this model: its columns, in its order.
data::SeriesTableOptions table_options(const LoadedSeriesModel& loaded);

// A value farther from its training mean, in standard deviations, is refused: it is a fault of the data, and the network's
// sums of it overflow.
inline constexpr int64_t kMostDeviations = 1'000'000;

// A table as the network reads it: standardised, with time features.
struct SeriesRows {
  Tensor values;  // [rows, columns]
  Tensor known;   // [rows, time features]; undefined where there are none
  int64_t count() const { return values.size(0); }
};
// Throws Error when the model has time features and the table has no times; naming line and column, for a value beyond
// kMostDeviations.
SeriesRows rows_of(const LoadedSeriesModel& loaded, const data::SeriesTable& table, const std::string& name);
// loaded.steps_in rows from each of `first` on.
models::SeriesBatch windows_at(const LoadedSeriesModel& loaded, const SeriesRows& rows,
                               std::span<const int64_t> first);
// What comes after those windows: [windows, targets, horizon].
Tensor steps_after(const LoadedSeriesModel& loaded, const SeriesRows& rows, std::span<const int64_t> first);

// Throws Error naming the first case of `where` that the network cannot read because of its length.
void check_lengths(const LoadedSeriesModel& loaded, const data::SeriesCases& cases, const std::string& where);
// Throws Error, beginning with `place` and naming feature and step, for a value beyond kMostDeviations. values: of one case,
// [steps, features].
void check_values(const LoadedSeriesModel& loaded, std::span<const float> values, const std::string& place);
// The same of all cases of `where`, a file; names the line too.
void check_values(const LoadedSeriesModel& loaded, const data::SeriesCases& cases, const std::string& where);
// Cases as the network reads them: standardised; what is missing is 0.
Tensor standard_cases(const LoadedSeriesModel& loaded, const data::SeriesCases& cases);
models::SeriesBatch cases_at(const Tensor& values, const data::SeriesCases& cases,
                             std::span<const int64_t> places);

// The next loaded.horizon steps after the last loaded.steps_in rows: [horizon, targets], in the table's own units.
std::vector<float> forecast(const LoadedSeriesModel& loaded, const SeriesRows& rows);
// For each case the scores of all classes, or the number, in its own units: [cases, outputs].
Tensor answer_cases(const LoadedSeriesModel& loaded, const data::SeriesCases& cases);

// From the scores of all classes, [cases, classes].
std::vector<Prediction> predictions_of(const Tensor& scores);

// Errors of forecasts of standardised values, and of the forecast that the last value stays.
struct ForecastScores {
  int64_t windows = 0;
  double mse = 0, mae = 0, naive_mse = 0, naive_mae = 0;
};
// Of the windows whose steps to forecast lie in rows [begin, end): of every `every`-th of them. Throws Error,
// beginning with `where`, when there are none.
ForecastScores score_forecasts(const LoadedSeriesModel& loaded, const SeriesRows& rows, int64_t begin,
                               int64_t end, int64_t every, const std::string& where);
// "MSE 0.385, MAE 0.401 on 2785 windows (the last value repeated: MSE 1.294, MAE 0.713)"
std::string to_text(const ForecastScores& scores);
Json to_json(const ForecastScores& scores);

struct NumberScores {
  int64_t cases = 0;
  double rmse = 0, mae = 0, naive_rmse = 0;  // naive: the mean of the training cases
};
NumberScores score_numbers(const LoadedSeriesModel& loaded, const Tensor& found,
                           std::span<const float> wanted);

// The times of the next `steps` rows, as far apart as the last two; empty where the table has no times.
std::vector<int64_t> times_after(const data::SeriesTable& table, int64_t steps);

// The consecutive parts of a table: "8640/2880/2880" (rows), "0.7/0.1/0.2" (shares), two or three of them. The
// last may be left out.
struct SeriesSplit {
  int64_t train = 0, valid = 0, test = 0;
};
// Throws Error on anything else, before data is read.
void check_split(const std::string& text);
// Throws Error when the parts are more than the rows.
SeriesSplit split_rows(const std::string& text, int64_t rows);

// How well the folder's model does on a file that is read as training reads it, for people or as JSON. split:
// of a table, whose last part is then the one that counts; empty: all of it. What `fovea predict --test` prints.
std::string series_test(const std::filesystem::path& folder, const std::string& file,
                        const std::string& split, bool json);

}  // namespace fovea::tasks
