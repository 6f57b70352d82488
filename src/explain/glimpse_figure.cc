// Left the picture with every window, numbered and joined by the path; right a row for each glimpse.
#include "explain/glimpse_figure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "explain/painter.h"

namespace fovea {
namespace {

constexpr double kMargin = 14, kPicture = 360, kPatch = 64, kNumber = 22, kBars = 48, kGap = 8, kDot = 8;
constexpr size_t kMostBars = 12;  // with more classes, the likeliest in the end are shown

void check(const GlimpseFigure& figure) {
  require(figure.height > 0 && figure.width > 0 && figure.patch > 0 &&
              static_cast<int64_t>(figure.pixels.size()) == 3 * figure.height * figure.width,
          "glimpse figure: got ", figure.pixels.size(), " bytes for a picture of ", figure.height, " x ",
          figure.width);
  for (const GlimpseStep& step : figure.steps) {
    require(step.probabilities.size() == figure.labels.size(), "glimpse figure: got ",
            step.probabilities.size(), " probabilities for ", figure.labels.size(), " labels");
    for (const GlimpseWindow& window : step.windows)
      require(static_cast<int64_t>(window.pixels.size()) == 3 * figure.patch * figure.patch,
              "glimpse figure: got ", window.pixels.size(), " bytes for a window of ", figure.patch, " x ",
              figure.patch);
  }
}

// The classes whose bars are shown, in the order of the labels.
std::vector<size_t> shown_classes(const GlimpseFigure& figure) {
  std::vector<size_t> classes(figure.labels.size());
  std::iota(classes.begin(), classes.end(), size_t{0});
  if (classes.size() <= kMostBars || figure.steps.empty()) return classes;
  const std::vector<float>& last = figure.steps.back().probabilities;
  std::stable_sort(classes.begin(), classes.end(), [&](size_t a, size_t b) { return last[a] > last[b]; });
  classes.resize(kMostBars);
  std::sort(classes.begin(), classes.end());
  return classes;
}

// "1", "1-3", "1, 4-5": glimpses counted from 1.
std::string glimpse_numbers(const std::vector<size_t>& glimpses) {
  std::string text;
  for (size_t i = 0, end; i < glimpses.size(); i = end) {
    for (end = i + 1; end < glimpses.size() && glimpses[end] == glimpses[end - 1] + 1;) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(glimpses[i] + 1);
    if (end > i + 1) text += "-" + std::to_string(glimpses[end - 1] + 1);
  }
  return text;
}

// The dot or longer tag of some glimpses: its middle and half its width; all are 2 kDot high.
struct Tag {
  double x, y, half;
  bool overlaps(const Tag& other) const {
    return std::abs(x - other.x) < half + other.half && std::abs(y - other.y) < 2 * kDot;
  }
};

// Where down the picture a tag hides none of the others: in its own place, or the nearest above or below it between
// `top` and `bottom`. Its own place where there is none.
double free_place(const Tag& tag, const std::vector<Tag>& others, double top, double bottom) {
  const auto is_free = [&](double y) {
    return std::none_of(others.begin(), others.end(), [&](const Tag& other) {
      return other.overlaps({tag.x, y, tag.half});
    });
  };
  if (is_free(tag.y)) return tag.y;
  for (double shift = 1; shift < bottom - top; ++shift)
    for (const double y : {tag.y + shift, tag.y - shift})
      if (y - kDot >= top && y + kDot <= bottom && is_free(y)) return y;
  return tag.y;
}

class GlimpsePainter {
 public:
  GlimpsePainter(const GlimpseFigure& figure, Painter painter)
      : figure_(figure), painter_(painter), classes_(shown_classes(figure)) {}

  PictureSize draw() const {
    double y = kMargin;
    const PictureSize title = painter_.text(figure_.title, kMargin, y, 15);
    y += title.height + kMargin;
    const double longest = static_cast<double>(std::max(figure_.height, figure_.width));
    const double zoom = std::max(1.0, std::floor(kPicture / longest));
    const double width = zoom * static_cast<double>(figure_.width),
                 height = zoom * static_cast<double>(figure_.height);
    painter_.pixels(figure_.pixels, figure_.height, figure_.width, kMargin, y, zoom);
    windows(kMargin, y, zoom, width, height);
    double right = kMargin + width, below = y;
    for (size_t t = 0; t < figure_.steps.size(); ++t) {
      const PictureSize size = row(t, 2 * kMargin + width, below);
      right = std::max(right, 2 * kMargin + width + size.width);
      below += size.height + kGap;
    }
    return {std::ceil(std::max(right, kMargin + title.width) + kMargin),
            std::ceil(std::max(y + height, below) + kMargin)};
  }

 private:
  Colour colour(size_t t) const { return step_colour(t, figure_.steps.size()); }

  void windows(double x, double y, double zoom, double width, double height) const {
    if (!painter_.paint) return;
    cairo_save(painter_.canvas);
    cairo_rectangle(painter_.canvas, x, y, width, height);
    cairo_clip(painter_.canvas);
    for (size_t t = 0; t < figure_.steps.size(); ++t)
      for (size_t s = figure_.steps[t].windows.size(); s-- > 0;) {
        const GlimpseWindow& window = figure_.steps[t].windows[s];
        const double side = zoom * static_cast<double>(window.side);
        painter_.frame(colour(t), x + zoom * static_cast<double>(window.left),
                       y + zoom * static_cast<double>(window.top), side, side, s == 0 ? 2 : 1,
                       s == 0 ? 1 : 0.35);
      }
    path(x, y, zoom);
    cairo_restore(painter_.canvas);
  }

  // A line from the middle of each window to the next, and a numbered dot at each.
  void path(double x, double y, double zoom) const {
    cairo_t* const canvas = painter_.canvas;
    const auto middle = [&](size_t t) {
      const GlimpseWindow& window = figure_.steps[t].windows[0];
      const double half = static_cast<double>(window.side) / 2;
      return std::pair{x + zoom * (static_cast<double>(window.left) + half),
                       y + zoom * (static_cast<double>(window.top) + half)};
    };
    for (size_t t = 1; t < figure_.steps.size(); ++t) {
      const auto [from_x, from_y] = middle(t - 1);
      const auto [to_x, to_y] = middle(t);
      const Colour c = colour(t);
      cairo_set_source_rgba(canvas, c.red, c.green, c.blue, 0.8);
      cairo_set_line_width(canvas, 1.5);
      cairo_move_to(canvas, from_x, from_y);
      cairo_line_to(canvas, to_x, to_y);
      cairo_stroke(canvas);
    }
    // Glimpses at nearly the same place share a dot, so that no number hides another.
    std::vector<std::vector<size_t>> dots;
    for (size_t t = 0; t < figure_.steps.size(); ++t) {
      const auto near = std::find_if(dots.begin(), dots.end(), [&](const std::vector<size_t>& dot) {
        const auto [at_x, at_y] = middle(t);
        const auto [dot_x, dot_y] = middle(dot[0]);
        return std::hypot(at_x - dot_x, at_y - dot_y) < 2 * kDot;
      });
      if (near == dots.end())
        dots.push_back({t});
      else
        near->push_back(t);
    }
    std::vector<Tag> tags;
    for (const std::vector<size_t>& dot : dots) {
      const auto [at_x, middle_y] = middle(dot[0]);
      const Colour c = colour(dot[0]);
      const std::string numbers = glimpse_numbers(dot);
      const PictureSize size = size_of(layout_text(canvas, numbers, 11).get());
      const double half = std::max(0.0, size.width / 2 - kDot / 2);  // a longer number makes the dot longer
      const double at_y =
          free_place({at_x, middle_y, half + kDot}, tags, y, y + zoom * static_cast<double>(figure_.height));
      tags.push_back({at_x, at_y, half + kDot});
      cairo_set_source_rgb(canvas, c.red, c.green, c.blue);
      cairo_new_path(canvas);
      cairo_arc(canvas, at_x + half, at_y, kDot, -M_PI / 2, M_PI / 2);
      cairo_arc(canvas, at_x - half, at_y, kDot, M_PI / 2, 3 * M_PI / 2);
      cairo_close_path(canvas);
      cairo_fill(canvas);
      painter_.text(numbers, at_x - size.width / 2, at_y - size.height / 2, 11, {}, {0, 0, 0});
    }
  }

  // Number, windows, and the probabilities after this glimpse.
  PictureSize row(size_t t, double x, double y) const {
    const GlimpseStep& step = figure_.steps[t];
    const double first = x;
    painter_.fill(colour(t), x, y, 5, kPatch);
    painter_.text(std::to_string(t + 1), x + 9, y + kPatch / 2 - 9, 14);
    x += 9 + kNumber;
    for (const GlimpseWindow& window : step.windows) {
      painter_.pixels(window.pixels, figure_.patch, figure_.patch, x, y,
                      kPatch / static_cast<double>(figure_.patch));
      painter_.frame({0.6, 0.6, 0.6}, x, y, kPatch, kPatch, 1);
      x += kPatch + kGap;
    }
    x += kGap;
    const auto best = std::max_element(step.probabilities.begin(), step.probabilities.end());
    for (const size_t k : classes_) {
      const double height = (kBars - 2) * step.probabilities[k];
      const bool leads = best - step.probabilities.begin() == static_cast<std::ptrdiff_t>(k);
      const double bar = bar_width();
      painter_.fill({0.93, 0.93, 0.93}, x, y, bar - 3, kBars);
      painter_.fill(leads ? Colour{0.1, 0.35, 0.7} : Colour{0.55, 0.65, 0.78}, x, y + kBars - height, bar - 3,
                    height);
      const PictureSize size =
          size_of(layout_text(painter_.canvas, figure_.labels[k], 10, {.width = bar - 2}).get());
      painter_.text(figure_.labels[k], x + (bar - 3 - size.width) / 2, y + kBars + 1, 10, {.width = bar - 2});
      x += bar;
    }
    const std::string said =
        figure_.labels[static_cast<size_t>(best - step.probabilities.begin())] + "  " + percent_text(*best);
    x += kGap + painter_.text(said, x + kGap, y + kPatch / 2 - 9, 13).width;
    return {x - first, kPatch};
  }

  double bar_width() const {
    double widest = 13;
    for (const size_t k : classes_)
      widest = std::max(widest, size_of(layout_text(painter_.canvas, figure_.labels[k], 10).get()).width + 6);
    return std::min(widest, 60.0);
  }

  const GlimpseFigure& figure_;
  Painter painter_;
  std::vector<size_t> classes_;
};

}  // namespace

std::string draw(const GlimpseFigure& figure, PictureFormat format) {
  check(figure);
  return draw_picture(format, [&](cairo_t* canvas, bool paint) {
    return GlimpsePainter(figure, Painter{canvas, paint}).draw();
  });
}

}  // namespace fovea
