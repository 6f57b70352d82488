// Turns model outputs into predictions of classes, label sets or numbers, scores them, and prints them.
#include "tasks/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "infer/class_scores.h"
#include "infer/number_scores.h"

namespace fovea::tasks {

std::vector<int32_t> Prediction::labels() const {
  if (form == data::LabelForm::one) return {label};
  std::vector<int32_t> predictions;
  for (size_t i = 0; i < probabilities.size(); ++i)
    if (probabilities[i] >= 0.5f) predictions.push_back(static_cast<int32_t>(i));
  return predictions;
}

Prediction prediction_of(std::span<const float> outputs, data::LabelForm form) {
  const auto best = std::max_element(outputs.begin(), outputs.end());
  for (const float output : outputs)
    require(std::isfinite(output) || (form == data::LabelForm::one && std::isfinite(*best)),
            "the model's weights are damaged: a class scored ", output);
  if (form == data::LabelForm::number) return {.form = form, .number = outputs[0]};
  Prediction predictions{.label = static_cast<int32_t>(best - outputs.begin()), .form = form};
  if (form == data::LabelForm::several) {
    for (const float logit : outputs)
      predictions.probabilities.push_back(
          static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit)))));
    return predictions;
  }
  double sum = 0;
  for (const float logit : outputs) sum += std::exp(static_cast<double>(logit) - *best);
  for (const float logit : outputs)
    predictions.probabilities.push_back(
        static_cast<float>(std::exp(static_cast<double>(logit) - *best) / sum));
  return predictions;
}

namespace {

train::Validation validation_of_sets(std::span<const Prediction> predictions, const data::Targets& wanted) {
  std::vector<uint8_t> said, is;
  double loss = 0;
  for (size_t i = 0; i < predictions.size(); ++i)
    for (size_t c = 0; c < predictions[i].probabilities.size(); ++c) {
      const float p = predictions[i].probabilities[c], target = wanted.values[is.size()];
      loss -= std::log(std::max(target > 0 ? p : 1 - p, std::numeric_limits<float>::min()));
      said.push_back(p >= 0.5f);
      is.push_back(target > 0);
    }
  const infer::LabelSetScores scores = infer::score_label_sets(said, is, wanted.width);
  return {100 * scores.micro_f1,
          {{"valid_loss", loss / static_cast<double>(is.size())},
           {"micro_f1", 100 * scores.micro_f1},
           {"macro_f1", 100 * scores.macro_f1}}};
}

train::Validation validation_of_numbers(std::span<const Prediction> predictions,
                                        const data::Targets& wanted) {
  std::vector<float> said;
  for (const Prediction& one : predictions) said.push_back(one.number);
  const infer::NumberScores scores = infer::score_numbers(said, wanted.values);
  return {100 * scores.pearson,
          {{"valid_loss", scores.squared_error},
           {"pearson", 100 * scores.pearson},
           {"spearman", 100 * scores.spearman}}};
}

// A prediction that was made for these labels.
void check_labels(const Prediction& prediction, std::span<const std::string> labels) {
  require(prediction.probabilities.size() == labels.size() && prediction.label >= 0 &&
              static_cast<size_t>(prediction.label) < std::max<size_t>(1, labels.size()),
          "got a prediction of ", prediction.probabilities.size(), " classes for ", labels.size(), " labels");
}

std::string number_text(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(number));
  return text;
}

}  // namespace

train::Validation validation_of(std::span<const Prediction> predictions, const data::Targets& wanted) {
  switch (wanted.form) {
    case data::LabelForm::one:
      break;
    case data::LabelForm::several:
      return validation_of_sets(predictions, wanted);
    case data::LabelForm::number:
      return validation_of_numbers(predictions, wanted);
  }
  return validation_of(predictions, wanted.labels);
}

ScoreName score_name_of(data::LabelForm form) {
  switch (form) {
    case data::LabelForm::one:
      break;
    case data::LabelForm::several:
      return {"micro F1", "%"};
    case data::LabelForm::number:
      return {"Pearson correlation x 100", ""};
  }
  return {"accuracy", "%"};
}

train::Validation validation_of(std::span<const Prediction> predictions, std::span<const int32_t> wanted) {
  require(!predictions.empty() && predictions.size() == wanted.size(), "validation: got ", predictions.size(),
          " predictions for ", wanted.size(), " labels, wanted one for each, and at least one");
  std::vector<int32_t> labels;
  double loss = 0;
  for (size_t i = 0; i < predictions.size(); ++i) {
    labels.push_back(predictions[i].label);
    // A probability too small for a float counts as the smallest one.
    const float probability = predictions[i].probabilities[static_cast<size_t>(wanted[i])];
    loss -= std::log(std::max(probability, std::numeric_limits<float>::min()));
  }
  const auto classes = static_cast<int64_t>(predictions[0].probabilities.size());
  const infer::ClassScores scores = infer::score_classes(labels, wanted, classes);
  return {100 * scores.accuracy,
          {{"valid_loss", loss / static_cast<double>(predictions.size())},
           {"accuracy", 100 * scores.accuracy},
           {"macro_f1", 100 * scores.macro_f1}}};
}

Json prediction_json(const Prediction& prediction, std::span<const std::string> labels) {
  if (prediction.form == data::LabelForm::number) return {{"value", value_to_json(prediction.number)}};
  check_labels(prediction, labels);
  Json json;
  if (prediction.form == data::LabelForm::one) {
    json["label"] = labels[static_cast<size_t>(prediction.label)];
  } else {
    json["labels"] = Json::array();
    for (const int32_t place : prediction.labels())
      json["labels"].push_back(labels[static_cast<size_t>(place)]);
  }
  json["probabilities"] = Json::object();
  for (size_t i = 0; i < labels.size(); ++i)
    json["probabilities"][labels[i]] = value_to_json(prediction.probabilities[i]);
  return json;
}

std::string probability_text(float probability) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * static_cast<double>(probability));
  return text;
}

std::string prediction_text(const Prediction& prediction, std::span<const std::string> labels) {
  if (prediction.form == data::LabelForm::number) return number_text(prediction.number);
  check_labels(prediction, labels);
  std::string text;
  for (const int32_t place : prediction.labels())
    text += (text.empty() ? "" : "; ") + labels[static_cast<size_t>(place)] + ", " +
            probability_text(prediction.probabilities[static_cast<size_t>(place)]);
  return text.empty() ? "no label" : text;
}

std::string prediction_line(const Prediction& prediction, std::span<const std::string> labels,
                            const LineForm& form) {
  if (prediction.form == data::LabelForm::number) return number_text(prediction.number);
  check_labels(prediction, labels);
  std::string line;
  for (const int32_t place : prediction.labels()) {
    if (!line.empty()) line += form.scores ? "\t" : form.separator;
    if (form.scores) {
      char text[32];
      std::snprintf(text, sizeof text, "%.4f\t",
                    static_cast<double>(prediction.probabilities[static_cast<size_t>(place)]));
      line += text;
    }
    line += labels[static_cast<size_t>(place)];
  }
  return line;
}

}  // namespace fovea::tasks
