// A picture under a spotlight: what is looked at stays as it is, the rest fades.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct Overlay {
  std::string title;  // may be empty
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
  // [rows, columns], laid over the whole picture and smoothed between centres; none: the picture as it is.
  // The largest is shown brightest, the smallest faintest.
  int64_t rows = 0, columns = 0;
  std::vector<float> weights = {};
};

// Side by side, wrapped into rows of `across`. Throws Error when sizes do not match.
struct OverlayFigure {
  std::string title;
  std::vector<Overlay> panels;
  int across = 4;
};
std::string draw(const OverlayFigure& figure, PictureFormat format);

}  // namespace fovea
