#include "tasks/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "infer/class_scores.h"

namespace fovea::tasks {

Prediction prediction_of(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  require(std::isfinite(*best), "the model's weights are damaged: a class scored ", *best);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *best);
  Prediction told{.label = static_cast<int32_t>(best - logits.begin()), .probabilities = {}};
  for (const float logit : logits)
    told.probabilities.push_back(static_cast<float>(std::exp(static_cast<double>(logit) - *best) / sum));
  return told;
}

train::Validation validation_of(std::span<const Prediction> told, std::span<const int32_t> wanted) {
  std::vector<int32_t> labels;
  double loss = 0;
  for (size_t i = 0; i < told.size(); ++i) {
    labels.push_back(told[i].label);
    // A probability too small for a float counts as the smallest one.
    const float probability = told[i].probabilities[static_cast<size_t>(wanted[i])];
    loss -= std::log(std::max(probability, std::numeric_limits<float>::min()));
  }
  const auto classes = static_cast<int64_t>(told[0].probabilities.size());
  const infer::ClassScores scores = infer::score_classes(labels, wanted, classes);
  return {100 * scores.accuracy,
          {{"valid_loss", loss / static_cast<double>(told.size())},
           {"accuracy", 100 * scores.accuracy},
           {"macro_f1", 100 * scores.macro_f1}}};
}

Json prediction_json(const Prediction& prediction, std::span<const std::string> labels) {
  Json json{{"label", labels[static_cast<size_t>(prediction.label)]}, {"probabilities", Json::object()}};
  for (size_t i = 0; i < labels.size(); ++i)
    json["probabilities"][labels[i]] = value_to_json(prediction.probabilities[i]);
  return json;
}

std::string probability_text(float probability) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * static_cast<double>(probability));
  return text;
}

std::string told_text(const Prediction& prediction, std::span<const std::string> labels) {
  const auto place = static_cast<size_t>(prediction.label);
  return labels[place] + ", " + probability_text(prediction.probabilities[place]);
}

}  // namespace fovea::tasks
