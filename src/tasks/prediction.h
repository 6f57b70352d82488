// What a classifier says of one text or picture, and how well it does on many.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/json.h"
#include "train/observer.h"

namespace fovea::tasks {

struct Prediction {
  int32_t label = 0;                 // its place among the labels
  std::vector<float> probabilities;  // of every label
};

// From the scores of all classes. Throws Error when they are not numbers.
Prediction prediction_of(std::span<const float> logits);

// Accuracy in per cent, by which a training goes, with loss and macro F1 beside it. As many predictions as
// wanted labels, at least one.
train::Validation validation_of(std::span<const Prediction> told, std::span<const int32_t> wanted);

// {label, probabilities: {label: probability}}
Json prediction_json(const Prediction& prediction, std::span<const std::string> labels);
// "cat, 98.2 %"
std::string told_text(const Prediction& prediction, std::span<const std::string> labels);
std::string probability_text(float probability);

}  // namespace fovea::tasks
