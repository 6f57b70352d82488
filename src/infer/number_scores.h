// How well numbers were predicted: correlation and error.
#pragma once

#include <span>

namespace fovea::infer {

struct NumberScores {
  double pearson = 0;   // linear correlation; 0 where one side is constant
  double spearman = 0;  // the same of ranks; of equal numbers, the mean of their ranks
  double squared_error = 0, absolute_error = 0;  // means
};

// As many of each, at least one.
NumberScores score_numbers(std::span<const float> predictions, std::span<const float> wanted);

}  // namespace fovea::infer
