#include "tasks/evaluation.h"

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

Json to_json(const Evaluation& e) {
  Json json{{e.unit, e.count},
            {"accuracy", e.scores.accuracy},
            {"macro_f1", e.scores.macro_f1},
            {"classes", Json::object()},
            {"confusion", e.scores.confusion}};
  for (const auto& [name, value] : e.details) json[name] = value;
  for (size_t i = 0; i < e.labels.size(); ++i) {
    const infer::ClassScore& one = e.scores.classes[i];
    json["classes"][e.labels[i]] = {
        {"count", one.count}, {"precision", one.precision}, {"recall", one.recall}, {"f1", one.f1}};
  }
  return json;
}

std::string to_text(const Evaluation& e) {
  std::string text = message("accuracy ", percent(e.scores.accuracy, 2), " %, macro F1 ",
                             percent(e.scores.macro_f1, 2), " %, ", e.count, " ", e.unit, "\n");
  for (const auto& [name, value] : e.details) text += message(name, " ", value, "\n");
  for (size_t i = 0; i < e.labels.size(); ++i) {
    const infer::ClassScore& one = e.scores.classes[i];
    text += message(e.labels[i], ": precision ", percent(one.precision, 1), ", recall ",
                    percent(one.recall, 1), ", F1 ", percent(one.f1, 1), ", ", one.count, " ", e.unit, "\n");
  }
  return text;
}

}  // namespace fovea::tasks
