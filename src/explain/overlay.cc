// The colour of a place is half heat colour, half picture. The picture is reduced to greys of the middle
// first: a black or a white ground would otherwise drown the heat colours.
#include "explain/overlay.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "explain/canvas.h"
#include "explain/shades.h"

namespace fovea {
namespace {

constexpr double kMargin = 12, kTitle = 18, kLeastSide = 160;
constexpr double kScale = 8, kScaleText = 10;  // height of the scale, and of the numbers below it
constexpr const char* kLegend = "weight of each place, from the smallest (blue) to the largest (orange)";
constexpr double kHeat = 0.55;  // share of the heat colour, the rest is the picture

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

// The cell that a point lies in.
float cell_at(const Overlay& overlay, double y, double x) {
  const auto place = [](double at, int64_t count) {
    return std::clamp<int64_t>(static_cast<int64_t>(at * static_cast<double>(count)), 0, count - 1);
  };
  return overlay
      .weights[static_cast<size_t>(place(y, overlay.rows) * overlay.columns + place(x, overlay.columns))];
}

struct Range {
  float low = 0, high = 0;
};
Range range_of(const Overlay& overlay) {
  if (overlay.weights.empty()) return {};
  const auto [least, most] = std::minmax_element(overlay.weights.begin(), overlay.weights.end());
  return {*least, *most};
}

double share_of(float weight, const Range& range) {
  return range.high > range.low ? (double{weight} - range.low) / (double{range.high} - range.low) : 0.5;
}

// The colour of a weight over a picture whose lightness there is `grey`, 0 ... 1.
Colour heat_over(double grey, double share) {
  const Colour heat = heat_colour(share);
  const double through = (1 - kHeat) * (0.2 + 0.7 * grey);
  return {kHeat * heat.red + through, kHeat * heat.green + through, kHeat * heat.blue + through};
}

// Cairo's pixels: 0x00RRGGBB.
uint32_t pixel_of(const Colour& colour) {
  uint32_t pixel = 0;
  for (const double part : {colour.red, colour.green, colour.blue})
    pixel = pixel << 8 | static_cast<uint32_t>(std::lround(255 * std::clamp(part, 0.0, 1.0)));
  return pixel;
}

void paint_picture(cairo_t* canvas, const Overlay& overlay, double scale) {
  std::vector<uint32_t> pixels = overlay_pixels(overlay);
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

void paint_outlines(cairo_t* canvas, const Overlay& overlay, double scale) {
  cairo_save(canvas);
  cairo_set_line_join(canvas, CAIRO_LINE_JOIN_ROUND);
  for (const Outline& line : overlay.outlines) {
    for (const Outline::Place& place : line.points) cairo_line_to(canvas, scale * place.x, scale * place.y);
    cairo_set_source_rgb(canvas, line.red, line.green, line.blue);
    cairo_set_line_width(canvas, 1.6);
    cairo_stroke(canvas);
  }
  cairo_restore(canvas);
}

void check(const Overlay& overlay) {
  require(overlay.height > 0 && overlay.width > 0 &&
              static_cast<int64_t>(overlay.pixels.size()) == 3 * overlay.height * overlay.width,
          "overlay: got ", overlay.pixels.size(), " bytes for a picture of ", overlay.height, " x ",
          overlay.width);
  require(static_cast<int64_t>(overlay.weights.size()) == overlay.rows * overlay.columns, "overlay: got ",
          overlay.weights.size(), " weights, wanted ", overlay.rows, " x ", overlay.columns);
}

class FigurePainter {
 public:
  FigurePainter(cairo_t* canvas, bool paint) : canvas_(canvas), paint_(paint) {}

  PictureSize draw(const OverlayFigure& figure) {
    double y = kMargin, right = 2 * kMargin;
    if (!figure.title.empty()) {
      const PictureSize size = text(figure.title, kMargin, y, 15);
      right = std::max(right, size.width + 2 * kMargin);
      y += size.height + kMargin;
    }
    const auto across = static_cast<size_t>(std::max(1, figure.across));
    for (size_t begin = 0; begin < figure.panels.size(); begin += across) {
      double x = kMargin, height = 0;
      for (size_t i = begin; i < std::min(figure.panels.size(), begin + across); ++i) {
        const PictureSize size = panel(figure.panels[i], x, y);
        x += size.width + kMargin;
        height = std::max(height, size.height);
      }
      right = std::max(right, x);
      y += height + kMargin;
    }
    if (std::any_of(figure.panels.begin(), figure.panels.end(),
                    [](const Overlay& panel) { return !panel.weights.empty(); })) {
      const PictureSize size = text(kLegend, kMargin, y - kMargin / 2, kScaleText);
      right = std::max(right, size.width + 2 * kMargin);
      y += size.height;
    }
    if (!figure.note.empty()) {
      const PictureSize size = text(figure.note, kMargin, y - kMargin / 2, kScaleText);
      right = std::max(right, size.width + 2 * kMargin);
      y += size.height;
    }
    return {std::ceil(right), std::ceil(y)};
  }

 private:
  PictureSize text(const std::string& words, double x, double y, double size, const TextRoom& room = {}) {
    const Layout layout = layout_text(canvas_, words, size, room);
    if (paint_) {
      cairo_set_source_rgb(canvas_, 0.1, 0.1, 0.1);
      show_text(canvas_, layout.get(), x, y);
    }
    return size_of(layout.get());
  }

  PictureSize panel(const Overlay& overlay, double x, double y) {
    const double shortest = static_cast<double>(std::min(overlay.height, overlay.width));
    const double zoom = std::max(1.0, std::ceil(kLeastSide / shortest));
    const double width = zoom * static_cast<double>(overlay.width),
                 height = zoom * static_cast<double>(overlay.height);
    text(overlay.title, x, y, 12, {.width = width});
    y += kTitle;
    if (paint_) {
      cairo_save(canvas_);
      cairo_translate(canvas_, x, y);
      paint_picture(canvas_, overlay, zoom);
      paint_outlines(canvas_, overlay, zoom);
      cairo_restore(canvas_);
    }
    if (overlay.weights.empty()) return {width, kTitle + height};
    return {width, kTitle + height + scale(range_of(overlay), x, y + height + 4, width)};
  }

  // The colours as they look over a picture of middle grey, from the smallest to the largest weight.
  double scale(const Range& range, double x, double y, double width) {
    constexpr int kSteps = 64;
    const bool flat = !(range.high > range.low);
    for (int i = 0; paint_ && i < kSteps; ++i) {
      const Colour colour = heat_over(0.5, flat ? 0.5 : (i + 0.5) / kSteps);
      cairo_set_source_rgb(canvas_, colour.red, colour.green, colour.blue);
      cairo_rectangle(canvas_, x + i * width / kSteps, y, width / kSteps + 0.5, kScale);
      cairo_fill(canvas_);
    }
    std::string low = weight_text(range.low), high = weight_text(range.high);
    for (int digits = 3; !flat && low == high && digits < 9; ++digits) {
      low = weight_text(range.low, digits);
      high = weight_text(range.high, digits);
    }
    const PictureSize size = text(flat ? low + " everywhere" : low, x, y + kScale, kScaleText);
    if (!flat)
      text(high, x + width - size_of(layout_text(canvas_, high, kScaleText).get()).width, y + kScale,
           kScaleText);
    return 4 + kScale + size.height;
  }

  cairo_t* canvas_;
  bool paint_;
};

}  // namespace

std::vector<uint32_t> overlay_pixels(const Overlay& overlay) {
  const Range range = range_of(overlay);
  std::vector<uint32_t> pixels(static_cast<size_t>(overlay.height * overlay.width));
  for (int64_t y = 0; y < overlay.height; ++y)
    for (int64_t x = 0; x < overlay.width; ++x) {
      const auto i = static_cast<size_t>(y * overlay.width + x);
      const auto part = [&](size_t c) { return overlay.pixels[3 * i + c] / 255.0; };
      Colour colour{part(0), part(1), part(2)};
      if (!overlay.weights.empty()) {
        const double down = (static_cast<double>(y) + 0.5) / static_cast<double>(overlay.height),
                     right = (static_cast<double>(x) + 0.5) / static_cast<double>(overlay.width);
        const float weight = overlay.smooth ? weight_at(overlay, down, right) : cell_at(overlay, down, right);
        colour = heat_over(0.3 * part(0) + 0.59 * part(1) + 0.11 * part(2), share_of(weight, range));
      }
      pixels[i] = pixel_of(colour);
    }
  return pixels;
}

std::string overlay_png(const Overlay& overlay, int zoom) {
  check(overlay);
  return draw_picture(PictureFormat::png, [&](cairo_t* canvas, bool paint) {
    if (paint) paint_picture(canvas, overlay, zoom);
    return PictureSize{static_cast<double>(zoom * overlay.width), static_cast<double>(zoom * overlay.height)};
  });
}

std::string draw(const OverlayFigure& figure, PictureFormat format) {
  for (const Overlay& panel : figure.panels) check(panel);
  return draw_picture(format,
                      [&](cairo_t* canvas, bool paint) { return FigurePainter(canvas, paint).draw(figure); });
}

std::string draw_pixels(int64_t height, int64_t width, const std::vector<uint8_t>& pixels,
                        PictureFormat format) {
  const Overlay overlay{.title = {}, .height = height, .width = width, .pixels = pixels};
  check(overlay);
  return draw_picture(format, [&](cairo_t* canvas, bool paint) {
    if (paint) paint_picture(canvas, overlay, 1);
    return PictureSize{static_cast<double>(width), static_cast<double>(height)};
  });
}

}  // namespace fovea
