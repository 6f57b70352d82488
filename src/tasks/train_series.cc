// Windows of a table, or labelled cases, a network that forecasts or labels them, and its folder.
#include "tasks/train_series.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error_kinds.h"
#include "data/time_features.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

// Windows used in a validation: more would take time and hardly change the score.
constexpr int64_t kMostValidated = 4096;

bool is_cases(const std::string& path) {
  return path.ends_with(".ts") || path.ends_with(".ts.gz");
}

struct Moments {
  std::vector<float> mean, deviation;
};

// Of every column of [rows, columns]; a column that never changes has the deviation 1.
Moments moments_of(std::span<const float> values, size_t columns) {
  Moments moments;
  for (size_t c = 0; c < columns; ++c) {
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (size_t i = c; i < values.size(); i += columns)
      if (!std::isnan(values[i])) {
        sum += double{values[i]};
        ++count;
      }
    const double mean = count > 0 ? sum / static_cast<double>(count) : 0;
    for (size_t i = c; i < values.size(); i += columns)
      if (!std::isnan(values[i])) squares += (double{values[i]} - mean) * (double{values[i]} - mean);
    const double deviation = count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
    moments.mean.push_back(static_cast<float>(mean));
    // Sums of rounded numbers leave a trace of a deviation where there is none.
    moments.deviation.push_back(
        deviation > 1e-6 * std::abs(mean) && deviation > 0 ? static_cast<float>(deviation) : 1.0f);
  }
  return moments;
}

// The place in [rows, columns] of a value beyond kMostDeviations of the others of its column; -1: there is none.
// Its own column hides such a value: it is at most sqrt(rows) deviations of all from their mean.
int64_t far_from_others(std::span<const float> values, size_t columns) {
  struct Spread {
    double mean = 0, deviation = 0;
  };
  for (size_t c = 0; c < columns; ++c) {
    const auto spread_without = [&](size_t left_out) {
      double sum = 0, squares = 0, count = 0;
      const auto for_each = [&](const auto& use) {
        for (size_t i = c; i < values.size(); i += columns)
          if (i != left_out && !std::isnan(values[i])) use(double{values[i]});
      };
      for_each([&](double value) {
        sum += value;
        ++count;
      });
      if (count == 0) return Spread{};
      for_each([&](double value) { squares += (value - sum / count) * (value - sum / count); });
      return Spread{sum / count, std::sqrt(squares / count)};
    };
    const double mean = spread_without(values.size()).mean;
    size_t farthest = c;
    double distance = -1;
    for (size_t i = c; i < values.size(); i += columns)
      if (std::abs(double{values[i]} - mean) > distance) {
        farthest = i;
        distance = std::abs(double{values[i]} - mean);
      }
    const Spread rest = spread_without(farthest);
    // Others that are equal, but for the rounding of sums, have no deviation to go by: a column may be 0 but in one row.
    if (rest.deviation > 1e-9 * std::abs(rest.mean) &&
        std::abs(double{values[farthest]} - rest.mean) >
            static_cast<double>(kMostDeviations) * rest.deviation)
      return static_cast<int64_t>(farthest);
  }
  return -1;
}

[[noreturn]] void refuse_far(const std::string& place, float value) {
  fail(place, ": got ", value, ", more than ", kMostDeviations,
       " standard deviations from the other values; correct it, or leave it out");
}

uint64_t fingerprint(std::span<const float> values) {
  DataFingerprint print;
  for (const float value : values) print.add(uint64_t{std::bit_cast<uint32_t>(value)});
  return print.value();
}

std::string channels_of(const Json& model_settings) {
  const bool given = model_settings.contains("channels") && model_settings["channels"].is_string();
  return given ? model_settings["channels"].get<std::string>() : "auto";
}

// The columns that the network reads, those to forecast first; how many of them these are.
std::vector<std::string> columns_of(const SeriesTraining& training, const Json& model_settings,
                                    const std::vector<std::string>& all, int64_t& targets) {
  std::vector<std::string> columns = data::parse_names(training.target, "target");
  if (columns.empty()) columns = all;
  targets = static_cast<int64_t>(columns.size());
  if (channels_of(model_settings) != "mixed") return columns;
  std::vector<std::string> inputs = data::parse_names(training.inputs, "inputs");
  for (const std::string& name : inputs.empty() ? all : inputs)
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
  return columns;
}

// What the two kinds of data have in common.
struct Run {
  const SeriesFiles& files;
  TrainSettings<SeriesTraining> settings;
  const std::string& command;
  RunObserver& observer;
  const std::function<bool()>& should_stop;
};

void make_network(const Run& run, LoadedSeriesModel& loaded, int64_t outputs) {
  loaded.model = run.settings.training.model;
  loaded.config = models::model_config<models::SeriesModels>(
      loaded.model, run.settings.model,
      Json{{"features", static_cast<int64_t>(loaded.columns.size())},
           {"known", static_cast<int64_t>(loaded.time_features.size())},
           {"window", loaded.steps_in},
           {"targets", loaded.targets},
           {"outputs", outputs}});
  Rng rng(run.settings.options.seed);
  loaded.network = models::make_model<models::SeriesModels>(loaded.model, loaded.config, rng);
}

TrainingPlan plan_of(const Run& run, const LoadedSeriesModel& loaded, int64_t examples) {
  const SeriesTraining& training = run.settings.training;
  TrainingPlan plan;
  plan.network = loaded.network.get();
  plan.rule = train::AdamW{.learning_rate = training.learning_rate, .weight_decay = training.weight_decay};
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = run.settings.options;
  plan.passes = 20;
  plan.sizes.assign(static_cast<size_t>(examples), {1, 0});
  plan.batch_size = *training.batch;
  plan.batch_unit = plan.unit = "series";
  plan.should_stop = run.should_stop;
  plan.save_config = [&loaded](const std::filesystem::path& out) { save_series_config(out, loaded); };
  plan.save_model = [&loaded](const std::filesystem::path& out) { save_series(out, loaded); };
  plan.command = run.command;
  return plan;
}

SeriesOutcome finish(const Run& run, const RunFolder& folder, const TrainingPlan& plan, SeriesGoal goal) {
  SeriesOutcome outcome;
  static_cast<TrainingOutcome&>(outcome) = run_training(folder, plan, run.observer);
  outcome.goal = goal;
  return outcome;
}

void note_gaps(const data::SeriesTable& table, RunObserver& observer) {
  if (table.times.size() < 3) return;
  const int64_t irregular = data::step_between(table.times).irregular;
  if (irregular > 0)
    observer.on_note(message("note: the time between rows is not always the same (", irregular, " of ",
                             table.times.size() - 1,
                             " differ from the most frequent one); each row counts as one step"));
}

// A table as training needs it.
struct ForecastData {
  LoadedSeriesModel loaded;  // without the network
  SeriesSplit split;
  SeriesRows rows, valid_rows;  // the same where validation is a part of the table
  int64_t valid_begin = 0, valid_end = 0;
  std::string valid_name;
  uint64_t print = 0;  // of the training part
};

// The columns that the network reads, in its order. Those that it does not read need not hold numbers.
data::SeriesTable read_train_table(const Run& run, LoadedSeriesModel& loaded) {
  const SeriesTraining& training = run.settings.training;
  loaded.missing = data::missing_named(training.missing);
  loaded.time_column = training.time_column;
  const bool all_read = channels_of(run.settings.model) == "mixed" && training.inputs.empty();
  if (!training.target.empty() && !all_read)
    loaded.columns = columns_of(training, run.settings.model, {}, loaded.targets);
  data::SeriesTable table = data::read_series_table(run.files.train, table_options(loaded));
  if (loaded.columns.empty()) {
    loaded.columns = columns_of(training, run.settings.model, table.columns, loaded.targets);
    table = data::with_columns(table, loaded.columns, run.files.train);
  }
  loaded.time_column = table.time_column;
  return table;
}

// Settles the sizes that follow from the data.
ForecastData read_forecast(Run& run) {
  ForecastData data;
  LoadedSeriesModel& loaded = data.loaded;
  const data::SeriesTable table = read_train_table(run, loaded);
  note_gaps(table, run.observer);
  SeriesTraining& training = run.settings.training;
  SeriesSplit& split = data.split;
  split.train = table.rows();
  if (!training.split.empty()) split = split_rows(training.split, table.rows());
  if (!training.horizon) training.horizon = std::clamp<int64_t>(split.train / 40, 1, 96);
  if (!training.steps_in) training.steps_in = std::clamp<int64_t>(split.train / 10, 1, 336);
  loaded.goal = SeriesGoal::forecast;
  loaded.time_features = data::parse_time_features(training.time_features);
  loaded.horizon = *training.horizon;
  loaded.steps_in = *training.steps_in;
  require(split.train >= loaded.steps_in + loaded.horizon, run.files.train, ": ", split.train,
          " rows to train on, wanted at least ", loaded.steps_in + loaded.horizon, " (--steps-in ",
          loaded.steps_in, " + --horizon ", loaded.horizon, ")");
  const auto trained_on =
      std::span(table.values).first(static_cast<size_t>(split.train) * loaded.columns.size());
  if (const int64_t far = far_from_others(trained_on, loaded.columns.size()); far >= 0) {
    const auto at = static_cast<size_t>(far), width = loaded.columns.size();
    refuse_far(message(run.files.train, ", line ", table.lines[at / width], ", column ",
                       in_quotes(loaded.columns[at % width])),
               trained_on[at]);
  }
  const Moments moments = moments_of(trained_on, loaded.columns.size());
  loaded.mean = moments.mean;
  loaded.deviation = moments.deviation;
  data.print = fingerprint(trained_on);
  data.rows = data.valid_rows = rows_of(loaded, table, run.files.train);
  data.valid_begin = split.train;
  data.valid_end = split.train + split.valid;
  data.valid_name = run.files.train + ", validation part";
  if (run.files.valid.empty()) return data;
  data.valid_name = run.files.valid;
  data.valid_rows =
      rows_of(loaded, data::read_series_table(data.valid_name, table_options(loaded)), data.valid_name);
  data.valid_begin = 0;
  data.valid_end = data.valid_rows.count();
  return data;
}

// A part that is too short to be scored is found before training. An empty one is not scored.
void check_part(const LoadedSeriesModel& loaded, int64_t begin, int64_t end, const std::string& where) {
  require(end <= begin || end - std::max(begin, loaded.steps_in) >= loaded.horizon, where, ": no window of ",
          loaded.steps_in, " + ", loaded.horizon,
          " steps fits; wanted more rows, or a smaller --steps-in or --horizon");
}

SeriesOutcome train_forecast(Run run) {
  ForecastData data = errors_as<FileError>([&] { return read_forecast(run); });
  LoadedSeriesModel& loaded = data.loaded;
  const int64_t examples = data.split.train - loaded.steps_in - loaded.horizon + 1;
  if (!run.settings.training.batch) run.settings.training.batch = batch_for(examples, 16, 64);
  make_network(run, loaded, loaded.horizon);
  const bool validated = data.valid_end > data.valid_begin;
  const int64_t every = (data.valid_end - data.valid_begin) / kMostValidated + 1;
  const auto scores = [&] {
    return score_forecasts(loaded, data.valid_rows, data.valid_begin, data.valid_end, every, data.valid_name);
  };
  const int64_t test_begin = data.split.train + data.split.valid, test_end = test_begin + data.split.test;
  const std::string test_name = run.files.train + ", test part";
  check_part(loaded, data.valid_begin, data.valid_end, data.valid_name);
  check_part(loaded, test_begin, test_end, test_name);
  const RunFolder folder(
      run.files.out, run_identity(run.settings, data.print, counted(data.split.train, "row")), run.observer);
  run.observer.on_note(message(examples, " windows of ", loaded.steps_in, " steps, ", loaded.columns.size(),
                               " columns, ", loaded.targets, " to forecast by ", loaded.horizon, " steps, ",
                               loaded.network->parameter_count(), " parameters"));

  TrainingPlan plan = plan_of(run, loaded, examples);
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    const models::SeriesTargets targets{.labels = {}, .numbers = steps_after(loaded, data.rows, chosen)};
    return train::BatchLoss{loaded.network->loss(windows_at(loaded, data.rows, chosen), targets, 0, context),
                            static_cast<double>(chosen.size())};
  };
  if (validated)
    plan.validate = [&] {
      const ForecastScores found = scores();
      return train::Validation{found.mse,
                               {{"valid_loss", found.mse}, {"mse", found.mse}, {"mae", found.mae}}};
    };
  plan.lower_is_better = true;
  plan.score_name = "MSE";
  plan.card = {.title = "A forecaster made with Fovea",
               .about = message("Reads ", loaded.steps_in, " steps of ", loaded.columns.size(),
                                " columns and forecasts the next ", loaded.horizon, " steps of ",
                                loaded.targets, ".\n"),
               .train = "`" + run.files.train + "`",
               .valid = "`" + data.valid_name + "` (standardised)",
               .use = "fovea predict " + run.files.out.string() + " < rows.csv"};
  SeriesOutcome outcome = finish(run, folder, plan, SeriesGoal::forecast);
  if (data.split.test == 0 || outcome.outcome == train::Outcome::interrupted) return outcome;
  outcome.test = to_text(score_forecasts(loaded, data.rows, test_begin, test_end, 1, test_name));
  return outcome;
}

// Throws Error unless the cases of a validation file have the form of those to train on. Its header may list the labels in
// another order: a label is then the place of its name in the training file.
void fit_to_training(const data::SeriesCases& train, const std::string& path, data::SeriesCases& valid) {
  require(valid.features == train.features, path, ": cases of ", valid.features,
          " features, but those to train on have ", train.features);
  require(valid.target == train.target && valid.classes.size() == train.classes.size(), path,
          ": other labels than those of the training file");
  std::vector<int32_t> places;
  for (const std::string& label : valid.classes) {
    const auto found = std::find(train.classes.begin(), train.classes.end(), label);
    require(found != train.classes.end(), path, ": the label ", in_quotes(label),
            " is not among those of the training file");
    places.push_back(static_cast<int32_t>(found - train.classes.begin()));
  }
  for (int32_t& label : valid.labels) label = places[static_cast<size_t>(label)];
  valid.classes = train.classes;
}

// Labelled cases as training needs them.
struct CaseData {
  LoadedSeriesModel loaded;  // without the network
  data::SeriesCases cases, valid;
  Tensor numbers;  // standardised, of a regression
  uint64_t print = 0;
};

CaseData read_cases(const Run& run) {
  CaseData data;
  LoadedSeriesModel& loaded = data.loaded;
  loaded.missing = data::missing_named(run.settings.training.missing);
  data.cases = data::read_series_cases(run.files.train, {loaded.missing});
  const data::SeriesCases& cases = data.cases;
  require(cases.target != data::CaseTarget::none, run.files.train,
          ": cases without labels; wanted a header with @classLabel true or @targetLabel true");
  if (!run.files.valid.empty()) {
    data.valid = data::read_series_cases(run.files.valid, {loaded.missing});
    fit_to_training(cases, run.files.valid, data.valid);
  }
  const bool classes = cases.target == data::CaseTarget::classes;
  require(classes || run.settings.training.smoothing.value_or(0) == 0, "smoothing applies to classes; ",
          run.files.train, " has numbers to learn");
  const auto all_equal = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [&](auto value) { return value == values[0]; });
  };
  if (classes)
    require(!all_equal(cases.labels), run.files.train, ": every case has the label ",
            in_quotes(cases.classes[static_cast<size_t>(cases.labels[0])]), ", wanted at least two labels");
  else
    require(!all_equal(cases.numbers), run.files.train, ": every case has the number ", cases.numbers[0],
            ", wanted different ones");
  loaded.goal = classes ? SeriesGoal::classify : SeriesGoal::regress;
  loaded.labels = cases.classes;
  for (int64_t f = 0; f < cases.features; ++f) loaded.columns.push_back(message("feature ", f + 1));
  if (const int64_t far = far_from_others(cases.values, loaded.columns.size()); far >= 0) {
    const int64_t row = far / cases.features;
    const auto i = std::upper_bound(cases.starts.begin(), cases.starts.end(), row) - cases.starts.begin() - 1;
    refuse_far(message(run.files.train, ", line ", cases.lines[static_cast<size_t>(i)], ", feature ",
                       far % cases.features + 1, ", step ", row - cases.starts[static_cast<size_t>(i)] + 1),
               cases.values[static_cast<size_t>(far)]);
  }
  const Moments moments = moments_of(cases.values, loaded.columns.size());
  loaded.mean = moments.mean;
  loaded.deviation = moments.deviation;
  bool equal = true;
  for (int64_t i = 0; i < cases.size(); ++i) equal = equal && cases.length(i) == cases.length(0);
  loaded.steps_in = equal ? cases.length(0) : 0;
  if (!classes) {
    const Moments of_target = moments_of(cases.numbers, 1);
    loaded.target_mean = of_target.mean[0];
    loaded.target_deviation = of_target.deviation[0];
    data.numbers = Tensor::from(cases.numbers, {cases.size()});
    for (float& number : data.numbers.span())
      number = (number - loaded.target_mean) / loaded.target_deviation;
  }
  DataFingerprint print;
  print.add(fingerprint(cases.values));
  print.add(fingerprint(cases.numbers));
  for (const int32_t label : cases.labels) print.add(static_cast<uint64_t>(label));
  for (const int64_t start : cases.starts) print.add(static_cast<uint64_t>(start));
  data.print = print.value();
  return data;
}

models::SeriesTargets targets_at(const CaseData& data, std::span<const int64_t> places) {
  models::SeriesTargets targets;
  for (const int64_t place : places)
    if (!data.cases.labels.empty()) targets.labels.push_back(data.cases.labels[static_cast<size_t>(place)]);
  if (!data.numbers.defined()) return targets;
  targets.numbers = Tensor({static_cast<int64_t>(places.size()), 1});
  for (size_t i = 0; i < places.size(); ++i) targets.numbers.data()[i] = data.numbers.data()[places[i]];
  return targets;
}

train::Validation validate_cases(const LoadedSeriesModel& loaded, const data::SeriesCases& valid) {
  const Tensor found = answer_cases(loaded, valid);
  if (loaded.goal == SeriesGoal::classify) return validation_of(predictions_of(found), valid.labels);
  const NumberScores scores = score_numbers(loaded, found, valid.numbers);
  return {scores.rmse, {{"rmse", scores.rmse}, {"mae", scores.mae}}};
}

SeriesOutcome train_cases(Run run) {
  CaseData data = errors_as<FileError>([&] { return read_cases(run); });
  LoadedSeriesModel& loaded = data.loaded;
  const bool classes = loaded.goal == SeriesGoal::classify;
  if (!run.settings.training.batch) run.settings.training.batch = batch_for(data.cases.size(), 16, 64);
  make_network(run, loaded, classes ? static_cast<int64_t>(loaded.labels.size()) : 1);
  errors_as<FileError>([&] {
    check_lengths(loaded, data.cases, run.files.train);
    check_lengths(loaded, data.valid, run.files.valid);
    check_values(loaded, data.cases, run.files.train);
    check_values(loaded, data.valid, run.files.valid);
  });
  const RunFolder folder(run.files.out,
                         run_identity(run.settings, data.print, counted(data.cases.size(), "case")),
                         run.observer);
  const std::string gives = classes ? message("one of ", loaded.labels.size(), " labels") : "a number";
  run.observer.on_note(message(data.cases.size(), " cases of ", data.cases.features, " features, ", gives,
                               " for each, ", loaded.network->parameter_count(), " parameters"));

  const Tensor values = standard_cases(loaded, data.cases);
  TrainingPlan plan = plan_of(run, loaded, data.cases.size());
  plan.passes = 60;
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    return train::BatchLoss{
        loaded.network->loss(cases_at(values, data.cases, chosen), targets_at(data, chosen),
                             run.settings.training.smoothing.value_or(0), context),
        static_cast<double>(chosen.size())};
  };
  if (data.valid.size() > 0) plan.validate = [&] { return validate_cases(loaded, data.valid); };
  plan.lower_is_better = !classes;
  plan.score_name = classes ? "accuracy" : "RMSE";
  plan.score_unit = classes ? "%" : "";
  plan.card = {.title = "A model of number sequences made with Fovea",
               .about = message("Reads series of ", data.cases.features, " features and gives ", gives,
                                " for each.\n"),
               .train = "`" + run.files.train + "`",
               .valid = run.files.valid.empty() ? "" : "`" + run.files.valid + "`",
               .use = "fovea predict " + run.files.out.string() + " < cases.ts"};
  return finish(run, folder, plan, loaded.goal);
}

// Options of tables given with cases, and the other way round.
void check_form(const SeriesFiles& files, const SeriesTraining& training, const Json& model_settings) {
  const bool cases = is_cases(files.train);
  require(files.valid.empty() || is_cases(files.valid) == cases, files.valid, ": got ",
          cases ? "a table" : "a .ts file", ", wanted the form of ", files.train);
  if (!cases) {
    require(training.smoothing.value_or(0) == 0, "smoothing applies to classes; ", files.train,
            " is a table to forecast");
    require(files.valid.empty() || training.split.empty(),
            "--split takes validation from the training file; leave out --valid");
    const Json standard = models::model_config<models::SeriesModels>(training.model, Json::object());
    const auto differs = [&](const char* name) {
      return model_settings.contains(name) && model_settings[name] != standard[name];
    };
    for (const char* name : {"score", "selection"})
      require(
          differs("pooling") || !differs(name), flag_name(name),
          " does not apply: forecasts read the states of all steps (--pooling flatten); it needs --pooling "
          "attention");
    return;
  }
  const std::pair<const char*, bool> of_tables[] = {{"steps_in", training.steps_in.has_value()},
                                                    {"horizon", training.horizon.has_value()},
                                                    {"target", !training.target.empty()},
                                                    {"inputs", !training.inputs.empty()},
                                                    {"time_column", !training.time_column.empty()},
                                                    {"time_features", !training.time_features.empty()},
                                                    {"split", !training.split.empty()}};
  for (const auto& [name, given] : of_tables)
    require(!given, flag_name(name), " applies to tables; ", files.train, " is a .ts file of cases");
}

}  // namespace

void apply_preset(const std::string& name, SeriesTraining& training, Json& settings) {
  const bool tiny = name == "tiny", base = name == "base";
  settings = {{"width", tiny ? 16 : base ? 128 : 64}};
  if (training.model != "transformer") return;
  settings["layers"] = base ? 3 : 2;
  settings["hidden"] = tiny ? 32 : base ? 256 : 128;
}

void check_training(const SeriesTraining& training, const Json& model_settings) {
  check_rates(training.learning_rate, training.warmup, double{training.smoothing.value_or(0)},
              training.weight_decay);
  const auto at_least_one = [](const char* name, const std::optional<int64_t>& value, int64_t most) {
    require(!value || (*value >= 1 && *value <= most), name, ": got ", value.value_or(0), ", wanted 1 to ",
            most);
  };
  at_least_one("batch", training.batch, 1 << 20);
  at_least_one("steps_in", training.steps_in, 1 << 20);
  at_least_one("horizon", training.horizon, 1 << 16);
  data::parse_names(training.target, "target");
  data::parse_names(training.inputs, "inputs");
  require(training.inputs.empty() || (channels_of(model_settings) == "mixed" && !training.target.empty()),
          "inputs: further columns to read need --channels mixed and --target; otherwise only the columns to "
          "forecast are read");
  const auto patch = model_settings.contains("patch") ? model_settings["patch"] : Json(0);
  require(!training.steps_in || !patch.is_number_integer() || patch.get<int64_t>() <= *training.steps_in,
          "patch: got ", patch.dump(), ", more than the --steps-in ", training.steps_in.value_or(0));
  data::parse_time_features(training.time_features);
  if (!training.split.empty()) check_split(training.split);
}

SeriesOutcome train_series(const SeriesFiles& files, const TrainSettings<SeriesTraining>& settings,
                           const std::string& command, RunObserver& observer,
                           const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  check_form(files, settings.training, settings.model);
  observer.on_note("reading " + files.train);
  const Run run{files, settings, command, observer, should_stop};
  return is_cases(files.train) ? train_cases(run) : train_forecast(run);
}

}  // namespace fovea::tasks
