#include "explain/painter.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fovea {

PictureSize Painter::text(const std::string& words, double x, double y, double size, const TextRoom& room,
                          const Colour& colour) const {
  const Layout layout = layout_text(canvas, words, size, room);
  if (paint) {
    cairo_set_source_rgb(canvas, colour.red, colour.green, colour.blue);
    show_text(canvas, layout.get(), x, y);
  }
  return size_of(layout.get());
}

void Painter::pixels(std::span<const uint8_t> pixels, int64_t height, int64_t width, double x, double y,
                     double zoom) const {
  if (!paint) return;
  std::vector<uint32_t> packed(static_cast<size_t>(height * width));  // cairo's: 0x00RRGGBB
  for (size_t i = 0; i < packed.size(); ++i)
    packed[i] = uint32_t{pixels[3 * i]} << 16 | uint32_t{pixels[3 * i + 1]} << 8 | pixels[3 * i + 2];
  cairo_surface_t* surface = cairo_image_surface_create_for_data(
      reinterpret_cast<unsigned char*>(packed.data()), CAIRO_FORMAT_RGB24, static_cast<int>(width),
      static_cast<int>(height), static_cast<int>(4 * width));
  cairo_save(canvas);
  cairo_translate(canvas, x, y);
  cairo_scale(canvas, zoom, zoom);
  cairo_set_source_surface(canvas, surface, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(canvas), CAIRO_FILTER_NEAREST);
  cairo_paint(canvas);
  cairo_restore(canvas);
  cairo_surface_destroy(surface);
}

void Painter::fill(const Colour& colour, double x, double y, double width, double height) const {
  if (!paint) return;
  cairo_set_source_rgb(canvas, colour.red, colour.green, colour.blue);
  cairo_rectangle(canvas, x, y, width, height);
  cairo_fill(canvas);
}

void Painter::frame(const Colour& colour, double x, double y, double width, double height, double line,
                    double opacity) const {
  if (!paint) return;
  cairo_set_source_rgba(canvas, colour.red, colour.green, colour.blue, opacity);
  cairo_set_line_width(canvas, line);
  cairo_rectangle(canvas, x, y, width, height);
  cairo_stroke(canvas);
}

Colour step_colour(size_t i, size_t n) {
  const double hue = 3.4 - 3.0 * static_cast<double>(i) / static_cast<double>(std::max<size_t>(1, n - 1));
  // Hue in sixths of the circle, 0.4 is orange and 3.4 blue; saturation 0.85, value 0.95.
  const double strong = 0.95, weak = strong * 0.15,
               part = weak + (strong - weak) * (1 - std::abs(std::fmod(hue, 2.0) - 1));
  if (hue < 1) return {strong, part, weak};
  if (hue < 2) return {part, strong, weak};
  if (hue < 3) return {weak, strong, part};
  return {weak, part, strong};
}

}  // namespace fovea
