// Weights of places laid over a picture as a heat map, with a scale below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

// A line through points of a picture, in its pixels: a box, a path.
struct Outline {
  struct Place {
    double x = 0, y = 0;
  };
  std::vector<Place> points;
  double red = 1, green = 1, blue = 0;  // 0 to 1
};

struct Overlay {
  std::string title;  // may be empty
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
  // [rows, columns], stretched over the whole picture; none: the picture as it is. Colours run from blue (the smallest weight) to orange (the largest); the picture
  // shows through in grey.
  int64_t rows = 0, columns = 0;
  std::vector<float> weights = {};
  std::vector<Outline> outlines = {};  // drawn over it
  bool smooth = true;  // interpolated between the centres of cells; otherwise each cell is one square
};

// The picture's pixels under its weights, row by row: 0x00RRGGBB.
std::vector<uint32_t> overlay_pixels(const Overlay& overlay);
// The same as a PNG file, each pixel `zoom` x `zoom`, without title and scale.
std::string overlay_png(const Overlay& overlay, int zoom = 1);

// Side by side, wrapped into rows of `across`. Throws Error when sizes do not match.
struct OverlayFigure {
  std::string title;
  std::vector<Overlay> panels;
  int across = 4;
  std::string note = {};  // said below the legend
};
std::string draw(const OverlayFigure& figure, PictureFormat format);

// The picture alone, pixel by pixel: [height, width, 3].
std::string draw_pixels(int64_t height, int64_t width, const std::vector<uint8_t>& pixels,
                        PictureFormat format);

}  // namespace fovea
