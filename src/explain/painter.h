// Pieces of figures made of pictures: text and pixels, always measured, and painted on request.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "explain/canvas.h"
#include "explain/shades.h"

namespace fovea {

struct Painter {
  cairo_t* canvas;
  bool paint;  // false: only measure

  PictureSize text(const std::string& words, double x, double y, double size, const TextRoom& room = {},
                   const Colour& colour = {0.1, 0.1, 0.1}) const;
  // pixels: [height, width, 3]; each becomes a square of zoom x zoom.
  void pixels(std::span<const uint8_t> pixels, int64_t height, int64_t width, double x, double y,
              double zoom) const;
  void fill(const Colour& colour, double x, double y, double width, double height) const;
  // The border of a rectangle; opacity 0 to 1.
  void frame(const Colour& colour, double x, double y, double width, double height, double line,
             double opacity = 1) const;
};

// A colour for step i of n that differs from its neighbours on dark pictures: from blue over green to orange.
Colour step_colour(size_t i, size_t n);

}  // namespace fovea
