#include "explain/film_strip.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "explain/painter.h"

namespace fovea {
namespace {

constexpr double kMargin = 12, kLeastSide = 84, kHole = 4, kFilm = 10, kBar = 30, kText = 11,
                 kNegative = -0.75;
constexpr Colour kBlack = {0.12, 0.12, 0.12}, kLead = {0.9, 0.45, 0.05}, kOther = {0.45, 0.6, 0.8};

void check(const FilmStrip& strip) {
  require(strip.height > 0 && strip.width > 0 && strip.across > 0, "film strip: got frames of ", strip.height,
          " x ", strip.width, " in rows of ", strip.across);
  require(strip.frames.size() == strip.weights.size(), "film strip: got ", strip.weights.size(),
          " weights for ", strip.frames.size(), " frames");
  for (const std::vector<uint8_t>& frame : strip.frames)
    require(static_cast<int64_t>(frame.size()) == 3 * strip.height * strip.width, "film strip: got ",
            frame.size(), " bytes for a frame of ", strip.height, " x ", strip.width);
}

// Black film with a row of holes above and below the frames.
void film(const Painter& painter, double x, double y, double width, double height) {
  painter.fill(kBlack, x, y, width, height + 2 * kFilm);
  for (double at = x + kHole; at + kHole < x + width; at += 3 * kHole)
    for (const double row : {y + (kFilm - kHole) / 2, y + kFilm + height + (kFilm - kHole) / 2})
      painter.fill({1, 1, 1}, at, row, kHole, kHole);
}

PictureSize paint(const FilmStrip& strip, const Painter& painter) {
  double y = kMargin;
  const PictureSize title = painter.text(strip.title, kMargin, y, 15);
  y += title.height + kMargin;
  const double zoom =
      std::max(1.0, std::ceil(kLeastSide / static_cast<double>(std::min(strip.height, strip.width))));
  const double width = zoom * static_cast<double>(strip.width),
               height = zoom * static_cast<double>(strip.height);
  float most = 0;
  for (const float weight : strip.weights) most = std::max(most, std::abs(weight));
  const auto across = static_cast<size_t>(strip.across);
  double right = kMargin + title.width;
  for (size_t begin = 0; begin < strip.frames.size(); begin += across) {
    const size_t count = std::min(across, strip.frames.size() - begin);
    const double step = width + kHole, length = static_cast<double>(count) * step + kHole;
    film(painter, kMargin, y, length, height);
    for (size_t i = 0; i < count; ++i) {
      const float weight = strip.weights[begin + i];
      const double x = kMargin + kHole + static_cast<double>(i) * step;
      painter.pixels(strip.frames[begin + i], strip.height, strip.width, x, y + kFilm, zoom);
      const bool leads = std::abs(weight) == most;
      if (leads) painter.frame(kLead, x, y + kFilm, width, height, 3);
      const double below = y + height + 2 * kFilm + 3,
                   bar = most > 0 ? kBar * std::abs(double{weight}) / double{most} : 0;
      painter.fill({0.94, 0.94, 0.94}, x, below, width, kBar);
      // A negative weight hangs from above.
      const Colour colour = weight < 0 ? colour_of(kNegative) : leads ? kLead : kOther;
      painter.fill(colour, x, weight < 0 ? below : below + kBar - bar, width, bar);
      painter.text(std::to_string(begin + i), x + 2, below + kBar + 1, kText, {}, {0.5, 0.5, 0.5});
      const std::string share = weight_text(weight);
      const double text_width = size_of(layout_text(painter.canvas, share, kText).get()).width;
      painter.text(share, x + width - text_width - 1, below + kBar + 1, kText);
    }
    right = std::max(right, kMargin + length);
    y += height + 2 * kFilm + kBar + 2 * kText + kMargin;
  }
  std::string about =
      "below each frame its number and its weight; the bar is relative to the largest weight (orange)";
  if (std::any_of(strip.weights.begin(), strip.weights.end(), [](float weight) { return weight < 0; }))
    about += std::string("; ") + kNegativeColourLegend;
  const PictureSize legend = painter.text(about, kMargin, y - kMargin / 2, 10);
  return {std::ceil(std::max(right, kMargin + legend.width) + kMargin),
          std::ceil(y + legend.height + kMargin / 2)};
}

}  // namespace

std::string draw(const FilmStrip& strip, PictureFormat format) {
  check(strip);
  return draw_picture(format, [&](cairo_t* canvas, bool painting) {
    return paint(strip, Painter{canvas, painting});
  });
}

}  // namespace fovea
