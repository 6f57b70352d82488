#include "tasks/evaluation.h"

#include <cmath>
#include <cstdio>

#include "base/error.h"

namespace fovea::tasks {
namespace {

std::string percent(double share, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, 100 * share);
  return text;
}

}  // namespace

Evaluation evaluate(std::span<const Prediction> predictions, std::span<const int32_t> targets,
                    const std::vector<std::string>& labels, const std::string& unit) {
  std::vector<int32_t> found;
  for (const Prediction& prediction : predictions) found.push_back(prediction.label);
  return {.unit = unit,
          .count = static_cast<int64_t>(found.size()),
          .labels = labels,
          .scores = infer::score_classes(found, targets, static_cast<int64_t>(labels.size()))};
}

Evaluation evaluate(std::span<const Prediction> predictions, const data::Targets& targets,
                    const std::vector<std::string>& labels, const std::string& unit) {
  if (targets.form == data::LabelForm::one) return evaluate(predictions, targets.labels, labels, unit);
  Evaluation e{.unit = unit,
               .count = static_cast<int64_t>(predictions.size()),
               .labels = labels,
               .form = targets.form};
  std::vector<float> numbers;
  std::vector<uint8_t> said, is;
  for (const Prediction& one : predictions) {
    numbers.push_back(one.number);
    for (const float p : one.probabilities) said.push_back(p >= 0.5f);
  }
  for (const float value : targets.values) is.push_back(value > 0);
  if (targets.form == data::LabelForm::number)
    e.numbers = infer::score_numbers(numbers, targets.values);
  else
    e.label_sets = infer::score_label_sets(said, is, targets.width);
  return e;
}

namespace {

Json class_json(const infer::ClassScore& one) {
  return {{"count", one.count}, {"precision", one.precision}, {"recall", one.recall}, {"f1", one.f1}};
}

// The scores of all texts, without the labels'.
Json totals_json(const Evaluation& e) {
  switch (e.form) {
    case data::LabelForm::one:
      break;
    case data::LabelForm::several:
      return {{e.unit, e.count},
              {"micro_f1", e.label_sets.micro_f1},
              {"macro_f1", e.label_sets.macro_f1},
              {"exact_match", e.label_sets.exact}};
    case data::LabelForm::number:
      return {{e.unit, e.count},
              {"pearson", e.numbers.pearson},
              {"spearman", e.numbers.spearman},
              {"mean_squared_error", e.numbers.squared_error},
              {"mean_absolute_error", e.numbers.absolute_error}};
  }
  return {{e.unit, e.count}, {"accuracy", e.scores.accuracy}, {"macro_f1", e.scores.macro_f1}};
}

std::string number_text(double value) {
  char text[32];
  // A large error does not fit, and is read more easily with an exponent.
  std::snprintf(text, sizeof text, std::abs(value) < 1e6 ? "%.4f" : "%.6g", value);
  return text;
}

std::string totals_text(const Evaluation& e) {
  switch (e.form) {
    case data::LabelForm::one:
      break;
    case data::LabelForm::several:
      return message("micro F1 ", percent(e.label_sets.micro_f1, 2), " %, macro F1 ",
                     percent(e.label_sets.macro_f1, 2), " %, all labels right ",
                     percent(e.label_sets.exact, 2), " %, ", e.count, " ", e.unit, "\n");
    case data::LabelForm::number:
      return message("Pearson ", number_text(e.numbers.pearson), ", Spearman ",
                     number_text(e.numbers.spearman), ", mean squared error ",
                     number_text(e.numbers.squared_error), ", mean absolute error ",
                     number_text(e.numbers.absolute_error), ", ", e.count, " ", e.unit, "\n");
  }
  return message("accuracy ", percent(e.scores.accuracy, 2), " %, macro F1 ", percent(e.scores.macro_f1, 2),
                 " %, ", e.count, " ", e.unit, "\n");
}

const std::vector<infer::ClassScore>& scores_of_labels(const Evaluation& e) {
  return e.form == data::LabelForm::several ? e.label_sets.labels : e.scores.classes;
}

}  // namespace

Json to_json(const Evaluation& e) {
  Json json = totals_json(e);
  if (e.words_for_90) json["words_for_90_percent"] = *e.words_for_90;
  for (const auto& [name, value] : e.details) json[name] = value;
  if (e.form == data::LabelForm::number) return json;
  json["classes"] = Json::object();
  for (size_t i = 0; i < e.labels.size(); ++i)
    json["classes"][e.labels[i]] = class_json(scores_of_labels(e)[i]);
  if (e.form == data::LabelForm::one) json["confusion"] = e.scores.confusion;
  return json;
}

std::string to_text(const Evaluation& e) {
  std::string text = totals_text(e);
  for (const auto& [name, value] : e.details) text += message(name, " ", value, "\n");
  for (size_t i = 0; e.form != data::LabelForm::number && i < e.labels.size(); ++i) {
    const infer::ClassScore& one = scores_of_labels(e)[i];
    text += message(e.labels[i], ": precision ", percent(one.precision, 1), ", recall ",
                    percent(one.recall, 1), ", F1 ", percent(one.f1, 1), ", ", one.count, " ", e.unit, "\n");
  }
  if (e.words_for_90)
    text += message("90 % of the attention weight is on ", percent(*e.words_for_90, 1), " % of the words\n");
  return text;
}

}  // namespace fovea::tasks
