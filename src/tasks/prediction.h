// What a classifier says of one text or picture, and how well it does on many.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/labelled_text.h"
#include "io/json.h"
#include "train/observer.h"

namespace fovea::tasks {

struct Prediction {
  int32_t label = 0;                      // the likeliest one's place among the labels
  std::vector<float> probabilities = {};  // of every label; where a text has several, each on its own
  data::LabelForm form = data::LabelForm::one;
  float number = 0;  // LabelForm::number

  // Indices of the predicted labels: the likeliest one, or all of at least 50 %.
  std::vector<int32_t> labels() const;
};

// From the scores of all classes; of a number from the number. Throws Error when they are not numbers.
Prediction prediction_of(std::span<const float> outputs, data::LabelForm form = data::LabelForm::one);

// What a training goes by, with the loss and other scores beside it: accuracy in per cent; of several labels micro
// F1 in per cent; of numbers 100 times Pearson's correlation. As many predictions as targets, at least one.
train::Validation validation_of(std::span<const Prediction> predictions, const data::Targets& wanted);
train::Validation validation_of(std::span<const Prediction> predictions, std::span<const int32_t> wanted);
// "accuracy", "micro F1", "Pearson correlation x 100"; and the unit of that value, "%" or none.
struct ScoreName {
  const char* name;
  const char* unit;
};
ScoreName score_name_of(data::LabelForm form);

// {label, probabilities: {label: probability}}, {labels: [label, ...], probabilities} or {value: number}
Json prediction_json(const Prediction& prediction, std::span<const std::string> labels);
// "cat, 98.2 %"; "sport, 98.2 %; news, 61.0 %" or "no label"; "3.21"
std::string prediction_text(const Prediction& prediction, std::span<const std::string> labels);
// A line for programs: the label, the labels between separators, or the number; scores: each probability and a tab
// before its label, and a tab between labels.
struct LineForm {
  std::string separator = ",";
  bool scores = false;
};
std::string prediction_line(const Prediction& prediction, std::span<const std::string> labels,
                            const LineForm& form = {});
std::string probability_text(float probability);

}  // namespace fovea::tasks
