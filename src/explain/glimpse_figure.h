// The path of a model's glimpses over a picture: the windows in order, what was seen through each, and the
// probabilities of the classes after every glimpse.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct GlimpseWindow {
  int64_t top = 0, left = 0, side = 0;  // in pixels of the picture; may leave it
  std::vector<uint8_t> pixels;          // [patch, patch, 3]: as the model saw it
};

struct GlimpseStep {
  std::vector<GlimpseWindow> windows;  // the sharpest first
  std::vector<float> probabilities;    // of every class
};

struct GlimpseFigure {
  std::string title;
  int64_t height = 0, width = 0, patch = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
  std::vector<std::string> labels;
  std::vector<GlimpseStep> steps;
};

// Throws Error when sizes do not match.
std::string draw(const GlimpseFigure& figure, PictureFormat format);

}  // namespace fovea
