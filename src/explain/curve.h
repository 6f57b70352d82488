// The curve of a training run: losses on the left axis, a score on the right, over steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct CurvePoint {
  double step = 0, value = 0;
};

struct LearningCurve {
  std::vector<CurvePoint> training_loss, validation_loss;
  std::string score_name;  // "BLEU"; empty without a score
  std::vector<CurvePoint> score;
};

// Points that are not finite are left out. A curve without any gives axes alone.
std::string draw(const LearningCurve& curve, PictureFormat format);

// Round numbers that cover [low, high] in about `count` steps: for axes. At least two.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace fovea
