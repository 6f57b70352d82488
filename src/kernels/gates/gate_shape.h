// The images that pass a gate.
#pragma once

#include <cstdint>

namespace fovea::kernels {

// [images, height, width, channels], each at least 1 but the images.
struct GateShape {
  int64_t images = 0, height = 0, width = 0, channels = 0;
  int64_t places() const { return height * width; }
  int64_t image_floats() const { return places() * channels; }
};

}  // namespace fovea::kernels
