// Draws curves over time and a strip of weights below them.
#include "explain/series_map.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "explain/canvas.h"
#include "explain/chart.h"
#include "explain/heatmap.h"
#include "explain/shades.h"

namespace fovea {
namespace {

constexpr size_t kMostRows = 16;
constexpr double kWidth = 900, kLeft = 150, kRight = 60, kTop = 46;
constexpr double kCurve = 64, kStrip = 14, kGap = 16, kBottom = 76;
constexpr double kFontSize = 12, kTitleSize = 14;

int64_t steps_of(const SeriesMap& map) {
  return map.rows.empty() ? 0 : static_cast<int64_t>(map.rows[0].weights.size());
}

void check(const SeriesMap& map) {
  for (const SeriesRow& row : map.rows)
    require(static_cast<int64_t>(row.weights.size()) == steps_of(map) &&
                (row.past.empty() || row.past.size() == row.weights.size()),
            "a series map's rows differ in length");
}

double weight_of(const SeriesRow& row) {
  return std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
}

float largest_weight(const SeriesMap& map) {
  float largest = 0;
  for (const SeriesRow& row : map.rows)
    for (const float weight : row.weights) largest = std::max(largest, std::abs(weight));
  return largest;
}

// The selection `identity` gives weights of any sign.
bool has_negative(const SeriesMap& map) {
  for (const SeriesRow& row : map.rows)
    if (std::any_of(row.weights.begin(), row.weights.end(), [](float weight) { return weight < 0; }))
      return true;
  return false;
}

// The rows of most weight, in their order.
SeriesMap shortened_map(const SeriesMap& map) {
  if (map.rows.size() <= kMostRows) return map;
  std::vector<size_t> order(map.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weight_of(map.rows[a]) > weight_of(map.rows[b]); });
  order.resize(kMostRows);
  std::sort(order.begin(), order.end());
  SeriesMap some = map;
  some.rows.clear();
  for (const size_t i : order) some.rows.push_back(map.rows[i]);
  some.note = message("the ", kMostRows, " of ", map.rows.size(), " features with the most weight",
                      map.note.empty() ? "" : "; ", map.note);
  return some;
}

class Painter {
 public:
  Painter(cairo_t* canvas, const SeriesMap& map) : canvas_(canvas), map_(map), steps_(steps_of(map)) {
    for (const SeriesRow& row : map.rows)
      ahead_ = std::max(ahead_, static_cast<int64_t>(row.forecast.size()));
    largest_ = largest_weight(map);
  }

  void paint() {
    text(map_.title, 12, 20, 0, kTitleSize, 0.1);
    double y = kTop;
    for (const SeriesRow& row : map_.rows) {
      if (!row.past.empty()) {
        curve(row, y);
        y += kCurve;
      }
      strip(row, y);
      text(row.name, kLeft - 10, row.past.empty() ? y + kStrip / 2 : y - kCurve / 2, 1, kFontSize, 0.1,
           kLeft - 20);
      text(percent_text(weight_of(row)), kWidth - kRight + 8, y + kStrip / 2, 0, kFontSize, 0.4);
      y += kStrip + kGap;
    }
    axis(y - kGap);
  }

  static double height(const SeriesMap& map) {
    double y = kTop + kBottom;
    for (const SeriesRow& row : map.rows) y += kStrip + kGap + (row.past.empty() ? 0 : kCurve);
    return y;
  }

 private:
  // Step 0 is the first of the past; the forecast follows the past.
  double x(double step) const {
    return kLeft +
           (kWidth - kLeft - kRight) * step / static_cast<double>(std::max<int64_t>(1, steps_ + ahead_));
  }

  // y is the middle; anchor 0: x is the left end, 1: the right end, 0.5: the middle.
  void text(const std::string& words, double x, double y, double anchor, double size, double grey,
            double width = kWidth - 24) {
    const Layout layout = layout_text(canvas_, words, size, {.width = width});
    const PictureSize room = size_of(layout.get());
    cairo_set_source_rgb(canvas_, grey, grey, grey);
    show_text(canvas_, layout.get(), x - anchor * room.width, y - room.height / 2);
  }

  void curve(const SeriesRow& row, double top) {
    float low = row.past[0], high = low;
    for (const auto* part : {&row.past, &row.forecast})
      for (const float value : *part) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
    const double range = high > low ? double{high} - double{low} : 1;
    const auto y = [&](float value) {
      return top + 4 + (kCurve - 12) * (1 - (double{value} - double{low}) / range);
    };
    cairo_set_line_width(canvas_, 1.25);
    cairo_set_line_join(canvas_, CAIRO_LINE_JOIN_ROUND);
    cairo_set_source_rgb(canvas_, 0.08, 0.31, 0.55);
    for (size_t i = 0; i < row.past.size(); ++i)
      cairo_line_to(canvas_, x(static_cast<double>(i) + 0.5), y(row.past[i]));
    cairo_stroke(canvas_);
    if (!row.forecast.empty()) {
      cairo_set_source_rgb(canvas_, 0.80, 0.40, 0.05);
      cairo_move_to(canvas_, x(static_cast<double>(steps_) - 0.5), y(row.past.back()));
      for (size_t i = 0; i < row.forecast.size(); ++i)
        cairo_line_to(canvas_, x(static_cast<double>(steps_) + static_cast<double>(i) + 0.5),
                      y(row.forecast[i]));
      cairo_stroke(canvas_);
    }
    text(weight_text(double{high}, 3), kWidth - kRight + 8, y(high) + 2, 0, 10, 0.5);
    text(weight_text(double{low}, 3), kWidth - kRight + 8, y(low) - 2, 0, 10, 0.5);
  }

  void strip(const SeriesRow& row, double top) {
    for (size_t i = 0; i < row.weights.size(); ++i) {
      const Colour colour = colour_of(root_share(double{row.weights[i]}, double{largest_}));
      const double left = x(static_cast<double>(i)), right = x(static_cast<double>(i) + 1);
      cairo_set_source_rgb(canvas_, colour.red, colour.green, colour.blue);
      cairo_rectangle(canvas_, left, top, right - left + 0.3, kStrip);
      cairo_fill(canvas_);
    }
    cairo_set_line_width(canvas_, 0.75);
    cairo_set_source_rgb(canvas_, 0.7, 0.7, 0.7);
    cairo_rectangle(canvas_, kLeft, top, x(static_cast<double>(steps_)) - kLeft, kStrip);
    cairo_stroke(canvas_);
  }

  void axis(double y) {
    const double now = x(static_cast<double>(steps_));
    if (ahead_ > 0) {
      cairo_set_line_width(canvas_, 1);
      const double dashes[] = {3, 3};
      cairo_set_dash(canvas_, dashes, 2, 0);
      cairo_set_source_rgb(canvas_, 0.5, 0.5, 0.5);
      cairo_move_to(canvas_, now, kTop - 6);
      cairo_line_to(canvas_, now, y + 4);
      cairo_stroke(canvas_);
      cairo_set_dash(canvas_, nullptr, 0, 0);
      // On a line of its own: a short forecast leaves no room beside the name of the last step.
      text(map_.end, kWidth - kRight, y + 28, 1, kFontSize, 0.3);
    }
    text(map_.first, kLeft, y + 12, 0, kFontSize, 0.3);
    text(map_.last, now, y + 12, 1, kFontSize, 0.3);
    text(message("white: weight 0, darkest: ", weight_text(double{largest_}), has_negative(map_) ? "; " : "",
                 has_negative(map_) ? kNegativeColourLegend : "",
                 "; on the right: the share of the weight of each row", map_.note.empty() ? "" : "; ",
                 map_.note),
         12, y + 52, 0, kFontSize, 0.3);
  }

  cairo_t* canvas_;
  const SeriesMap& map_;
  int64_t steps_, ahead_ = 0;
  float largest_ = 0;
};

}  // namespace

std::string draw(const SeriesMap& map, PictureFormat format) {
  check(map);
  const SeriesMap shown = shortened_map(map);
  return draw_picture(format, [&](cairo_t* canvas, bool now) {
    if (now) Painter(canvas, shown).paint();
    return PictureSize{kWidth, Painter::height(shown)};
  });
}

std::string shade(const SeriesMap& map, size_t width) {
  check(map);
  const SeriesMap shown = shortened_map(map);
  const int64_t steps = steps_of(shown);
  size_t widest = 0;
  for (const SeriesRow& row : shown.rows) widest = std::max(widest, terminal_width(row.name));
  widest = std::min<size_t>(widest, 24);
  const auto room = static_cast<int64_t>(std::max<size_t>(width, widest + 20) - widest - 10);
  const int64_t each = std::max<int64_t>(1, (steps + room - 1) / room);
  std::vector<std::vector<double>> sums;
  double largest = 0;
  for (const SeriesRow& row : shown.rows) {
    sums.emplace_back(static_cast<size_t>((steps + each - 1) / each));
    for (int64_t i = 0; i < steps; ++i)
      sums.back()[static_cast<size_t>(i / each)] += double{row.weights[static_cast<size_t>(i)]};
    for (const double sum : sums.back()) largest = std::max(largest, std::abs(sum));
  }
  std::string text = shown.title + "\n\n";
  for (size_t r = 0; r < shown.rows.size(); ++r) {
    const std::string name = shortened(shown.rows[r].name, widest);
    text += name + std::string(widest - terminal_width(name) + 1, ' ') + "|";
    for (const double sum : sums[r]) text += block_of(root_share(sum, largest));
    text += "| " + percent_text(weight_of(shown.rows[r])) + "\n";
  }
  text += std::string(widest + 2, ' ') + "from " + shown.first + " to " + shown.last;
  if (each > 1) text += message("; a block is ", each, " steps");
  if (has_negative(shown)) text += message("; ", kNegativeBlockLegend);
  return text + (shown.note.empty() ? "\n" : "\n" + shown.note + "\n");
}

}  // namespace fovea
