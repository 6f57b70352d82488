// Opens series models, standardises tables and cases, computes forecasts and answers, and scores them.
#include "tasks/series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/error_kinds.h"
#include "base/stop_check.h"
#include "data/time_features.h"
#include "io/file.h"
#include "models/registry/series_models.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/evaluation.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

constexpr std::array kGoals = {SeriesGoal::forecast, SeriesGoal::classify, SeriesGoal::regress};
// Steps processed together.
constexpr int64_t kBatchSteps = 32768;
constexpr int64_t kLongestWindow = 1 << 24;

SeriesGoal goal_named(const std::string& name, const std::string& where) {
  for (const SeriesGoal goal : kGoals)
    if (name_of(goal) == name) return goal;
  fail(where, ": unknown goal ", in_quotes(name), ", wanted forecast, classify or regress");
}

void check_fit(const LoadedSeriesModel& p, const models::SeriesConfig& c, const std::string& where) {
  const auto columns = static_cast<int64_t>(p.columns.size());
  require(
      columns == c.features && p.mean.size() == p.columns.size() && p.deviation.size() == p.columns.size(),
      where, ": columns, mean and deviation must have ", c.features, " entries, as many as features");
  require(std::all_of(p.deviation.begin(), p.deviation.end(), [](float d) { return d > 0; }) &&
              p.target_deviation > 0,
          where, ": deviations must be above 0");
  require(static_cast<int64_t>(p.time_features.size()) == c.known, where, ": ", p.time_features.size(),
          " time features, but the network has ", c.known);
  const bool forecast = p.goal == SeriesGoal::forecast;
  require(forecast == (c.targets > 0), where, ": the goal and the number of targets do not fit");
  require(p.targets == c.targets && p.horizon == (forecast ? c.outputs : 0) && p.steps_in == c.window &&
              p.steps_in >= (forecast ? 1 : 0) && p.steps_in <= kLongestWindow,
          where, ": targets, horizon and steps_in do not fit the network");
  if (p.goal == SeriesGoal::classify)
    require(static_cast<int64_t>(p.labels.size()) == c.outputs, where, ": ", p.labels.size(), " labels for ",
            c.outputs, " outputs");
  if (p.goal == SeriesGoal::regress) require(c.outputs == 1, where, ": ", c.outputs, " outputs, wanted 1");
}

// Calls use(first, count) for batches of examples that have about kBatchSteps steps.
template <class Use>
void in_batches(int64_t examples, int64_t steps_each, const Use& use) {
  const int64_t batch = std::max<int64_t>(1, kBatchSteps / std::max<int64_t>(1, steps_each));
  for (int64_t first = 0; first < examples; first += batch) {
    check_stop();
    use(first, std::min(batch, examples - first));
  }
}

std::string fixed(double value, int digits = 4) {
  const bool plain = std::abs(value) < 1e6;  // larger ones are read more easily with an exponent
  char text[64];
  std::snprintf(text, sizeof text, plain ? "%.*f" : "%.*g", plain ? digits : digits + 2, value);
  return text;
}

// Also what is not a number once it is standardised; what is missing was none before.
bool is_too_far(float standardised) {
  return !(std::abs(standardised) <= static_cast<float>(kMostDeviations));
}

[[noreturn]] void refuse_far(const std::string& place, float value, float mean) {
  fail(place, ": got ", value, ", more than ", kMostDeviations,
       " standard deviations from the mean of the training data, ", mean, "; correct it, or leave it out");
}

}  // namespace

std::string_view name_of(SeriesGoal goal) {
  switch (goal) {
    case SeriesGoal::forecast:
      return "forecast";
    case SeriesGoal::classify:
      return "classify";
    case SeriesGoal::regress:
      break;
  }
  return "regress";
}

LoadedSeriesModel load_series(const std::filesystem::path& folder, const std::string& compute) {
  const Compute kind = compute_named(compute);
  const FolderConfig config = read_folder_config(folder, "series");
  const std::string where = (folder / "config.json").string();
  LoadedSeriesModel loaded;
  loaded.model = config.model;
  loaded.config = config.settings;
  const auto read = [&](const char* name, auto& value) {
    require(config.all.contains(name), where, ": a model of series without ", name);
    value_from_json(config.all[name], value, where + ": " + name);
  };
  std::string goal, missing, features;
  read("goal", goal);
  loaded.goal = goal_named(goal, where);
  read("columns", loaded.columns);
  read("mean", loaded.mean);
  read("deviation", loaded.deviation);
  read("missing", missing);
  loaded.missing = data::missing_named(missing);
  read("targets", loaded.targets);
  read("steps_in", loaded.steps_in);
  read("horizon", loaded.horizon);
  read("time_column", loaded.time_column);
  read("time_features", features);
  loaded.time_features = data::parse_time_features(features);
  read("labels", loaded.labels);
  read("target_mean", loaded.target_mean);
  read("target_deviation", loaded.target_deviation);
  loaded.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    return models::make_model<models::SeriesModels>(config.model, config.settings, rng);
  });
  check_fit(loaded, loaded.network->settings(), where);
  if (kind == Compute::int8) nn::round_to_int8(*loaded.network, folder.string());
  loaded.prepared = nn::Prepared(*loaded.network, kind);  // with its matrices: explanations take gradients
  return loaded;
}

void save_series_config(const std::filesystem::path& folder, const LoadedSeriesModel& loaded) {
  std::string features;
  for (const std::string& name : loaded.time_features) features += (features.empty() ? "" : ",") + name;
  save_json(folder / "config.json", Json{{"task", "series"},
                                         {"model", loaded.model},
                                         {"settings", loaded.config},
                                         {"goal", name_of(loaded.goal)},
                                         {"columns", loaded.columns},
                                         {"mean", value_to_json(loaded.mean)},
                                         {"deviation", value_to_json(loaded.deviation)},
                                         {"missing", loaded.missing == data::Missing::last ? "last" : "stop"},
                                         {"targets", loaded.targets},
                                         {"steps_in", loaded.steps_in},
                                         {"horizon", loaded.horizon},
                                         {"time_column", loaded.time_column},
                                         {"time_features", features},
                                         {"labels", loaded.labels},
                                         {"target_mean", value_to_json(loaded.target_mean)},
                                         {"target_deviation", value_to_json(loaded.target_deviation)}});
}

void save_series(const std::filesystem::path& folder, const LoadedSeriesModel& loaded) {
  make_directories(folder);
  nn::save_weights(*loaded.network, folder / "model.safetensors");
  save_series_config(folder, loaded);
}

data::SeriesTableOptions table_options(const LoadedSeriesModel& loaded) {
  return {.time_column = loaded.time_column, .columns = loaded.columns, .missing = loaded.missing};
}

SeriesRows rows_of(const LoadedSeriesModel& loaded, const data::SeriesTable& table, const std::string& name) {
  const auto columns = static_cast<int64_t>(table.columns.size());
  SeriesRows rows{Tensor({table.rows(), columns}), {}};
  for (size_t i = 0; i < table.values.size(); ++i) {
    const size_t c = i % table.columns.size();
    rows.values.data()[i] = (table.values[i] - loaded.mean[c]) / loaded.deviation[c];
    if (!is_too_far(rows.values.data()[i])) continue;
    const size_t row = i / table.columns.size();
    refuse_far(message(name, table.lines.empty() ? ", row " : ", line ",
                       table.lines.empty() ? static_cast<int64_t>(row) + 1 : table.lines[row], ", column ",
                       in_quotes(table.columns[c])),
               table.values[i], loaded.mean[c]);
  }
  if (loaded.time_features.empty()) return rows;
  require(!table.times.empty(), name, ": no column of times, which the time features are made of");
  rows.known = Tensor::from(data::time_features(table.times, loaded.time_features),
                            {table.rows(), static_cast<int64_t>(loaded.time_features.size())});
  return rows;
}

models::SeriesBatch windows_at(const LoadedSeriesModel& loaded, const SeriesRows& rows,
                               std::span<const int64_t> first) {
  const auto count = static_cast<int64_t>(first.size());
  const auto copied = [&](const Tensor& from) {
    const int64_t width = from.size(1);
    const Tensor to({count * loaded.steps_in, width});
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(from.data() + first[static_cast<size_t>(i)] * width, loaded.steps_in * width,
                  to.data() + i * loaded.steps_in * width);
    return to;
  };
  return {copied(rows.values), rows.known.defined() ? copied(rows.known) : Tensor(),
          std::vector<int64_t>(first.size(), loaded.steps_in)};
}

Tensor steps_after(const LoadedSeriesModel& loaded, const SeriesRows& rows, std::span<const int64_t> first) {
  const int64_t width = rows.values.size(1);
  const Tensor after({static_cast<int64_t>(first.size()), loaded.targets, loaded.horizon});
  float* out = after.data();
  for (const int64_t begin : first)
    for (int64_t t = 0; t < loaded.targets; ++t)
      for (int64_t h = 0; h < loaded.horizon; ++h)
        *out++ = rows.values.data()[(begin + loaded.steps_in + h) * width + t];
  return after;
}

void check_lengths(const LoadedSeriesModel& loaded, const data::SeriesCases& cases,
                   const std::string& where) {
  for (int64_t i = 0; i < cases.size(); ++i)
    loaded.network->check_steps(cases.length(i), message(where, ", case ", i + 1));
}

void check_values(const LoadedSeriesModel& loaded, std::span<const float> values, const std::string& place) {
  const size_t features = loaded.columns.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t f = i % features;
    if (!std::isnan(values[i]) && is_too_far((values[i] - loaded.mean[f]) / loaded.deviation[f]))
      refuse_far(message(place, ", feature ", f + 1, ", step ", i / features + 1), values[i], loaded.mean[f]);
  }
}

void check_values(const LoadedSeriesModel& loaded, const data::SeriesCases& cases, const std::string& where) {
  for (int64_t i = 0; i < cases.size(); ++i)
    check_values(loaded, cases[i],
                 cases.lines.empty() ? message(where, ", case ", i + 1)
                                     : message(where, ", line ", cases.lines[static_cast<size_t>(i)]));
}

Tensor standard_cases(const LoadedSeriesModel& loaded, const data::SeriesCases& cases) {
  const Tensor values({cases.starts.back(), cases.features});
  for (size_t i = 0; i < cases.values.size(); ++i) {
    const size_t f = i % static_cast<size_t>(cases.features);
    const float value = (cases.values[i] - loaded.mean[f]) / loaded.deviation[f];
    values.data()[i] = std::isnan(value) ? 0 : value;
  }
  return values;
}

models::SeriesBatch cases_at(const Tensor& values, const data::SeriesCases& cases,
                             std::span<const int64_t> places) {
  models::SeriesBatch batch;
  int64_t steps = 0;
  for (const int64_t place : places) {
    batch.lengths.push_back(cases.length(place));
    steps += batch.lengths.back();
  }
  batch.values = Tensor({steps, cases.features});
  float* out = batch.values.data();
  for (const int64_t place : places)
    out = std::copy_n(values.data() + cases.starts[static_cast<size_t>(place)] * cases.features,
                      cases.length(place) * cases.features, out);
  return batch;
}

std::vector<float> forecast(const LoadedSeriesModel& loaded, const SeriesRows& rows) {
  const NoGrad no_grad;
  const nn::Prepared prepared(*loaded.network);
  nn::Context context;
  const int64_t first[] = {rows.count() - loaded.steps_in};
  const Tensor found = loaded.network->outputs(windows_at(loaded, rows, first), context).value().contiguous();
  std::vector<float> steps;
  for (int64_t h = 0; h < loaded.horizon; ++h)
    for (int64_t t = 0; t < loaded.targets; ++t) {
      const auto column = static_cast<size_t>(t);
      steps.push_back(found.data()[t * loaded.horizon + h] * loaded.deviation[column] + loaded.mean[column]);
      require(std::isfinite(steps.back()), "the model's weights are damaged: it forecasts ", steps.back());
    }
  return steps;
}

Tensor answer_cases(const LoadedSeriesModel& loaded, const data::SeriesCases& cases) {
  const NoGrad no_grad;
  const nn::Prepared prepared(*loaded.network);
  nn::Context context;
  const Tensor values = standard_cases(loaded, cases);
  const int64_t outputs = loaded.network->settings().outputs;
  const Tensor all({cases.size(), outputs});
  in_batches(cases.size(), cases.starts.back() / std::max<int64_t>(1, cases.size()),
             [&](int64_t first, int64_t count) {
               std::vector<int64_t> places(static_cast<size_t>(count));
               for (int64_t i = 0; i < count; ++i) places[static_cast<size_t>(i)] = first + i;
               const Tensor found =
                   loaded.network->outputs(cases_at(values, cases, places), context).value().contiguous();
               std::copy_n(found.data(), found.count(), all.data() + first * outputs);
             });
  if (loaded.goal == SeriesGoal::regress)
    for (float& value : all.span()) value = value * loaded.target_deviation + loaded.target_mean;
  return all;
}

std::vector<Prediction> predictions_of(const Tensor& scores) {
  std::vector<Prediction> predictions;
  const int64_t classes = scores.size(1);
  for (int64_t i = 0; i < scores.size(0); ++i)
    predictions.push_back(prediction_of({scores.data() + i * classes, static_cast<size_t>(classes)}));
  return predictions;
}

ForecastScores score_forecasts(const LoadedSeriesModel& loaded, const SeriesRows& rows, int64_t begin,
                               int64_t end, int64_t every, const std::string& where) {
  std::vector<int64_t> first;
  for (int64_t row = std::max(begin, loaded.steps_in); row + loaded.horizon <= end; row += every)
    first.push_back(row - loaded.steps_in);
  require(!first.empty(), where, ": no window of ", loaded.steps_in, " + ", loaded.horizon,
          " steps fits; wanted more rows");
  const NoGrad no_grad;
  const nn::Prepared prepared(*loaded.network);
  nn::Context context;
  ForecastScores scores{.windows = static_cast<int64_t>(first.size())};
  const int64_t width = rows.values.size(1);
  in_batches(scores.windows, loaded.steps_in, [&](int64_t from, int64_t count) {
    const auto some = std::span(first).subspan(static_cast<size_t>(from), static_cast<size_t>(count));
    const Tensor found =
        loaded.network->outputs(windows_at(loaded, rows, some), context).value().contiguous();
    const Tensor wanted = steps_after(loaded, rows, some);
    for (int64_t i = 0; i < found.count(); ++i) {
      const int64_t window = i / (loaded.targets * loaded.horizon),
                    target = i / loaded.horizon % loaded.targets;
      const int64_t last = some[static_cast<size_t>(window)] + loaded.steps_in - 1;
      const double error = double{found.data()[i]} - double{wanted.data()[i]},
                   naive = double{rows.values.data()[last * width + target]} - double{wanted.data()[i]};
      scores.mse += error * error;
      scores.mae += std::abs(error);
      scores.naive_mse += naive * naive;
      scores.naive_mae += std::abs(naive);
    }
  });
  const auto numbers = static_cast<double>(scores.windows * loaded.targets * loaded.horizon);
  for (double* sum : {&scores.mse, &scores.mae, &scores.naive_mse, &scores.naive_mae}) *sum /= numbers;
  return scores;
}

std::string to_text(const ForecastScores& s) {
  return message("MSE ", fixed(s.mse), ", MAE ", fixed(s.mae), " on ", s.windows,
                 " windows (the last value repeated: MSE ", fixed(s.naive_mse), ", MAE ", fixed(s.naive_mae),
                 ")");
}

Json to_json(const ForecastScores& s) {
  return {{"windows", s.windows},
          {"mse", s.mse},
          {"mae", s.mae},
          {"naive_mse", s.naive_mse},
          {"naive_mae", s.naive_mae}};
}

std::vector<int64_t> times_after(const data::SeriesTable& table, int64_t steps) {
  std::vector<int64_t> times;
  if (table.times.size() < 2) return times;
  const data::TimeStep step = data::step_between(table.times);
  for (int64_t i = 1; i <= steps; ++i) times.push_back(data::time_after(table.times.back(), step, i));
  return times;
}

NumberScores score_numbers(const LoadedSeriesModel& loaded, const Tensor& found,
                           std::span<const float> wanted) {
  NumberScores scores{.cases = static_cast<int64_t>(wanted.size())};
  double squares = 0, naive = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double error = double{found.data()[i]} - double{wanted[i]},
                 middle = double{loaded.target_mean} - double{wanted[i]};
    squares += error * error;
    naive += middle * middle;
    scores.mae += std::abs(error);
  }
  const auto count = static_cast<double>(wanted.size());
  scores.rmse = std::sqrt(squares / count);
  scores.naive_rmse = std::sqrt(naive / count);
  scores.mae /= count;
  return scores;
}

namespace {

std::vector<double> split_numbers(const std::string& text) {
  std::vector<double> loaded;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    const auto number = data::number_of(text.substr(begin, end - begin));
    require(number && *number > 0, "split: got ", in_quotes(text),
            ", wanted rows such as 8640/2880/2880, or shares such as 0.7/0.1/0.2");
    loaded.push_back(double{*number});
    begin = end + 1;
  }
  require(loaded.size() == 2 || loaded.size() == 3, "split: got ", loaded.size(),
          " parts, wanted 2 or 3: training, validation and test");
  const bool shares = loaded[0] < 1;
  double sum = 0;
  for (const double part : loaded) {
    require((part < 1) == shares && (shares || part == std::floor(part)), "split: got ", in_quotes(text),
            ", wanted only numbers of rows or only shares below 1");
    sum += part;
  }
  require(!shares || sum <= 1 + 1e-6, "split: the shares add up to ", sum, ", wanted at most 1");
  return loaded;
}

}  // namespace

void check_split(const std::string& text) {
  split_numbers(text);
}

SeriesSplit split_rows(const std::string& text, int64_t rows) {
  std::vector<double> loaded = split_numbers(text);
  if (loaded[0] < 1)
    for (double& part : loaded) part = std::floor(part * static_cast<double>(rows) + 1e-6);
  SeriesSplit split{static_cast<int64_t>(loaded[0]), static_cast<int64_t>(loaded[1]),
                    loaded.size() > 2 ? static_cast<int64_t>(loaded[2]) : 0};
  require(split.train + split.valid + split.test <= rows, "split: ", in_quotes(text), " needs ",
          split.train + split.valid + split.test, " rows; the file has ", rows);
  return split;
}

namespace {

std::string table_test(const LoadedSeriesModel& loaded, const std::string& file, const std::string& split,
                       bool json) {
  const data::SeriesTable table = data::read_series_table(file, table_options(loaded));
  int64_t begin = 0, end = table.rows();
  if (!split.empty()) {
    const SeriesSplit cut = split_rows(split, table.rows());
    begin = cut.test > 0 ? cut.train + cut.valid : cut.train;
    end = cut.train + cut.valid + cut.test;
  }
  const ForecastScores scores = score_forecasts(loaded, rows_of(loaded, table, file), begin, end, 1, file);
  return (json ? to_json(scores).dump() : to_text(scores)) + "\n";
}

std::string case_test(const LoadedSeriesModel& loaded, const std::string& file, bool json) {
  const data::SeriesCases cases = data::read_series_cases(file, {.missing = loaded.missing});
  require(cases.features == static_cast<int64_t>(loaded.columns.size()), file, ": cases of ", cases.features,
          " features, but the model reads ", loaded.columns.size());
  check_lengths(loaded, cases, file);
  check_values(loaded, cases, file);
  const Tensor found = answer_cases(loaded, cases);
  if (loaded.goal == SeriesGoal::classify) {
    require(cases.target == data::CaseTarget::classes, file, ": no class labels (@classLabel true)");
    std::vector<int32_t> targets;
    for (const int32_t label : cases.labels) {
      const std::string& name = cases.classes[static_cast<size_t>(label)];
      const auto place = std::find(loaded.labels.begin(), loaded.labels.end(), name);
      require(place != loaded.labels.end(), file, ": the label ", in_quotes(name),
              " does not occur in the data that the model was trained on");
      targets.push_back(static_cast<int32_t>(place - loaded.labels.begin()));
    }
    const Evaluation evaluation = evaluate(predictions_of(found), targets, loaded.labels, "cases");
    return json ? to_json(evaluation).dump() + "\n" : to_text(evaluation);
  }
  require(cases.target == data::CaseTarget::number, file, ": no numbers to compare with (@targetLabel true)");
  const NumberScores s = score_numbers(loaded, found, cases.numbers);
  if (json)
    return Json{{"cases", s.cases}, {"rmse", s.rmse}, {"mae", s.mae}, {"naive_rmse", s.naive_rmse}}.dump() +
           "\n";
  return message("RMSE ", fixed(s.rmse), ", MAE ", fixed(s.mae), " on ", s.cases,
                 " cases (the mean of the training cases: RMSE ", fixed(s.naive_rmse), ")\n");
}

}  // namespace

std::string series_test(const std::filesystem::path& folder, const std::string& file,
                        const std::string& split, bool json) {
  const LoadedSeriesModel loaded = errors_as<ModelError>([&] { return load_series(folder); });
  require(split.empty() || loaded.goal == SeriesGoal::forecast, "--split applies to forecasts only; ",
          folder.string(), " contains a model of cases");
  return errors_as<FileError>([&] {
    return loaded.goal == SeriesGoal::forecast ? table_test(loaded, file, split, json)
                                               : case_test(loaded, file, json);
  });
}

}  // namespace fovea::tasks
