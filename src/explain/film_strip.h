// The frames of a clip side by side, with the weight of each below it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct FilmStrip {
  std::string title;
  int64_t height = 0, width = 0;             // of a frame
  std::vector<std::vector<uint8_t>> frames;  // [height, width, 3] each
  std::vector<float> weights;                // one for each frame
  int across = 8;                            // frames in a row
};

// Throws Error when sizes do not match.
std::string draw(const FilmStrip& strip, PictureFormat format);

}  // namespace fovea
