#include "explain/overlay.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "explain/canvas.h"

namespace fovea {
namespace {

constexpr double kMargin = 12, kTitle = 18, kLeastSide = 160;

// Between the centres of cells, and flat beyond the outer ones.
float weight_at(const Overlay& overlay, double y, double x) {
  const auto place = [](double at, int64_t count) {
    return std::clamp(at * static_cast<double>(count) - 0.5, 0.0, static_cast<double>(count - 1));
  };
  const double row = place(y, overlay.rows), column = place(x, overlay.columns);
  const auto r = static_cast<int64_t>(row), c = static_cast<int64_t>(column);
  const int64_t r1 = std::min(r + 1, overlay.rows - 1), c1 = std::min(c + 1, overlay.columns - 1);
  const double dr = row - static_cast<double>(r), dc = column - static_cast<double>(c);
  const auto at = [&](int64_t i, int64_t j) {
    return static_cast<double>(overlay.weights[static_cast<size_t>(i * overlay.columns + j)]);
  };
  return static_cast<float>((1 - dr) * ((1 - dc) * at(r, c) + dc * at(r, c1)) +
                            dr * ((1 - dc) * at(r1, c) + dc * at(r1, c1)));
}

// Cairo's pixels: 0x00RRGGBB.
std::vector<uint32_t> lit(const Overlay& overlay) {
  float low = 0, high = 0;
  if (!overlay.weights.empty()) {
    const auto [least, most] = std::minmax_element(overlay.weights.begin(), overlay.weights.end());
    low = *least;
    high = *most;
  }
  std::vector<uint32_t> pixels(static_cast<size_t>(overlay.height * overlay.width));
  for (int64_t y = 0; y < overlay.height; ++y)
    for (int64_t x = 0; x < overlay.width; ++x) {
      double light = 1;
      if (high > low) {
        const float weight =
            weight_at(overlay, (static_cast<double>(y) + 0.5) / static_cast<double>(overlay.height),
                      (static_cast<double>(x) + 0.5) / static_cast<double>(overlay.width));
        light = 0.15 + 0.85 * (weight - low) / (high - low);
      }
      const auto i = static_cast<size_t>(y * overlay.width + x);
      uint32_t colour = 0;
      for (size_t c = 0; c < 3; ++c) {
        // Towards white: dark pictures fade as well as bright ones.
        const double faded = 255 - light * (255 - overlay.pixels[3 * i + c]);
        colour = colour << 8 | static_cast<uint32_t>(std::lround(faded));
      }
      pixels[i] = colour;
    }
  return pixels;
}

void paint_picture(cairo_t* canvas, const Overlay& overlay, double scale) {
  std::vector<uint32_t> pixels = lit(overlay);
  cairo_surface_t* surface = cairo_image_surface_create_for_data(
      reinterpret_cast<unsigned char*>(pixels.data()), CAIRO_FORMAT_RGB24, static_cast<int>(overlay.width),
      static_cast<int>(overlay.height), static_cast<int>(4 * overlay.width));
  cairo_save(canvas);
  cairo_scale(canvas, scale, scale);
  cairo_set_source_surface(canvas, surface, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(canvas), CAIRO_FILTER_NEAREST);
  cairo_paint(canvas);
  cairo_restore(canvas);
  cairo_surface_destroy(surface);
}

void check(const Overlay& overlay) {
  require(overlay.height > 0 && overlay.width > 0 &&
              static_cast<int64_t>(overlay.pixels.size()) == 3 * overlay.height * overlay.width,
          "overlay: got ", overlay.pixels.size(), " bytes for a picture of ", overlay.height, " x ",
          overlay.width);
  require(static_cast<int64_t>(overlay.weights.size()) == overlay.rows * overlay.columns, "overlay: got ",
          overlay.weights.size(), " weights, wanted ", overlay.rows, " x ", overlay.columns);
}

PictureSize draw_figure(cairo_t* canvas, const OverlayFigure& figure, bool paint) {
  double y = kMargin, right = 2 * kMargin;
  const auto write = [&](const std::string& text, double x, double top, double size) {
    const Layout layout = layout_text(canvas, text, size);
    if (paint) {
      cairo_set_source_rgb(canvas, 0.1, 0.1, 0.1);
      cairo_move_to(canvas, x, top);
      pango_cairo_show_layout(canvas, layout.get());
    }
    return size_of(layout.get());
  };
  if (!figure.title.empty()) {
    const PictureSize size = write(figure.title, kMargin, y, 15);
    right = std::max(right, size.width + 2 * kMargin);
    y += size.height + kMargin;
  }
  const auto across = static_cast<size_t>(std::max(1, figure.across));
  for (size_t begin = 0; begin < figure.panels.size(); begin += across) {
    double x = kMargin, height = 0;
    for (size_t i = begin; i < std::min(figure.panels.size(), begin + across); ++i) {
      const Overlay& panel = figure.panels[i];
      const double shortest = static_cast<double>(std::min(panel.height, panel.width));
      const double scale = std::max(1.0, std::ceil(kLeastSide / shortest));
      const double titled = write(panel.title, x, y, 12).width;
      if (paint) {
        cairo_save(canvas);
        cairo_translate(canvas, x, y + kTitle);
        paint_picture(canvas, panel, scale);
        cairo_restore(canvas);
      }
      x += std::max(titled, scale * static_cast<double>(panel.width)) + kMargin;
      height = std::max(height, kTitle + scale * static_cast<double>(panel.height));
    }
    right = std::max(right, x);
    y += height + kMargin;
  }
  return {std::ceil(right), std::ceil(y)};
}

}  // namespace

std::string draw(const OverlayFigure& figure, PictureFormat format) {
  for (const Overlay& panel : figure.panels) check(panel);
  return draw_picture(format,
                      [&](cairo_t* canvas, bool paint) { return draw_figure(canvas, figure, paint); });
}

}  // namespace fovea
