#include <cmath>
#include <mutex>

#include "base/error_kinds.h"
#include "data/text.h"
#include "data/time_features.h"
#include "tasks/explain.h"
#include "tasks/explain_series.h"
#include "tasks/open_kinds.h"
#include "tasks/series.h"

namespace fovea::tasks {
namespace {

// An input is the text of a table, or one line of a .ts file.
class OpenSeries : public OpenFolder {
 public:
  OpenSeries(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)), model_(errors_as<ModelError>([&] {
          return load_series(this->contents().folder, compute_of(options));
        })) {}

  void check(const AnswerOptions& options) const override {
    require(!options.words, "--weights works for text models only; use `fovea explain` for series");
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    check(options);
    std::vector<Answer> answers(inputs.size());
    data::SeriesCases cases{.features = static_cast<int64_t>(model_.columns.size())};
    for (size_t i = 0; i < inputs.size(); ++i) try {
        if (model_.goal == SeriesGoal::forecast)
          answers[i].numbers = forecast(model_, last_rows(inputs[i]));
        else
          append_case(inputs[i], cases);
      } catch (const Error& error) {
        answers[i].error = error.what();
      }
    if (cases.size() == 0) return answers;
    const Tensor found = answer_cases(model_, cases);
    const auto predictions =
        model_.goal == SeriesGoal::classify ? predictions_of(found) : std::vector<Prediction>();
    size_t next = 0;
    for (Answer& answer : answers) {
      if (!answer.error.empty()) continue;
      if (model_.goal == SeriesGoal::classify)
        answer.prediction = predictions[next++];
      else
        answer.numbers = {found.data()[next++]};
    }
    return answers;
  }

  Json to_json(const Input& input, const Answer& answer) const override {
    if (!answer.error.empty()) return {{"error", answer.error}};
    if (model_.goal == SeriesGoal::classify) return prediction_json(answer.prediction, model_.labels);
    if (model_.goal == SeriesGoal::regress) return {{"number", value_to_json(answer.numbers[0])}};
    Json json{{"columns", Json::array()}, {"steps", Json::array()}};
    for (int64_t t = 0; t < model_.targets; ++t)
      json["columns"].push_back(model_.columns[static_cast<size_t>(t)]);
    const data::SeriesTable table = table_of(input);
    const std::vector<int64_t> times = times_after(table, model_.horizon);
    if (!times.empty()) json["time_column"] = table.time_column;
    if (!times.empty()) json["times"] = Json::array();
    for (const int64_t time : times) json["times"].push_back(data::time_text(time));
    for (int64_t h = 0; h < model_.horizon; ++h) {
      Json step = Json::array();
      for (int64_t t = 0; t < model_.targets; ++t)
        step.push_back(value_to_json(answer.numbers[static_cast<size_t>(h * model_.targets + t)]));
      json["steps"].push_back(std::move(step));
    }
    return json;
  }

  Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                      size_t columns) const override {
    check_explain(contents(), options, form);
    // Gradients are the network's: one at a time.
    const std::scoped_lock lock(explaining_);
    const SeriesExplanation shown = errors_as<FileError>([&] {
      return model_.goal == SeriesGoal::forecast
                 ? explain_forecast(model_, table_of(input), name_of_input(input))
                 : explain_case(model_, cases_of(input));
    });
    return {shown.answer,
            form.empty() ? shade(shown.map, columns) : explain_series_file(shown, "explanation" + form)};
  }

 private:
  static std::string name_of_input(const Input& input) {
    return input.name.empty() ? "the table" : input.name;
  }

  data::SeriesTable table_of(const Input& input) const {
    return data::parse_series_table(input.content, name_of_input(input), table_options(model_));
  }

  SeriesRows last_rows(const Input& input) const {
    const data::SeriesTable table = table_of(input);
    require(table.rows() >= model_.steps_in, name_of_input(input), ": ", table.rows(),
            " rows, but the model reads ", model_.steps_in, " steps before it forecasts");
    return rows_of(model_, table, name_of_input(input));
  }

  void append_case(const Input& input, data::SeriesCases& cases) const {
    const std::string place = input.name.empty() ? "the case" : input.name;
    require(data::is_utf8(input.content), place, " is not UTF-8");
    const std::vector<float> values =
        data::parse_case(input.content, cases.features, place, {.missing = model_.missing});
    model_.network->check_steps(static_cast<int64_t>(values.size()) / cases.features, place);
    check_values(model_, values, place);
    cases.values.insert(cases.values.end(), values.begin(), values.end());
    cases.starts.push_back(static_cast<int64_t>(cases.values.size()) / cases.features);
  }

  // A whole .ts file, or one line of it.
  data::SeriesCases cases_of(const Input& input) const {
    require(!data::strip(input.content).empty(), input.name.empty() ? "the case" : input.name,
            " is empty, wanted a .ts file or one line of it");
    if (input.content.find("@data") == std::string::npos) {
      data::SeriesCases cases{.features = static_cast<int64_t>(model_.columns.size())};
      append_case(input, cases);
      return cases;
    }
    data::SeriesCases cases = data::parse_series_cases(
        input.content, input.name.empty() ? "the cases" : input.name, {.missing = model_.missing});
    require(cases.features == static_cast<int64_t>(model_.columns.size()), input.name, ": cases of ",
            cases.features, " features, but the model reads ", model_.columns.size());
    check_lengths(model_, cases, input.name.empty() ? "the cases" : input.name);
    check_values(model_, cases, input.name.empty() ? "the cases" : input.name);
    return cases;
  }

  LoadedSeriesModel model_;
  mutable std::mutex explaining_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_series(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenSeries>(std::move(contents), options);
}

}  // namespace fovea::tasks
