// Draws line charts: axes, ticks, curves and a legend.
#include "explain/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "explain/canvas.h"

namespace fovea {
namespace {

constexpr double kWidth = 720, kHeight = 420;
constexpr double kLeft = 64, kRight = 64, kTop = 40, kBottom = 56;
constexpr double kFontSize = 12;

struct Ink {
  double red, green, blue;
  std::vector<double> dashes;  // so that lines differ in print by more than colour
};

// Dark blue, orange, grey, green, purple; then the same again, dashed.
const Ink kInks[] = {{0.08, 0.31, 0.55, {}},     {0.80, 0.40, 0.05, {6, 3}}, {0.50, 0.56, 0.63, {}},
                     {0.15, 0.50, 0.28, {2, 2}}, {0.45, 0.22, 0.55, {}},     {0.08, 0.31, 0.55, {2, 3}},
                     {0.80, 0.40, 0.05, {}},     {0.15, 0.50, 0.28, {8, 2}}};

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;
};

Chart finite(Chart chart) {
  for (Series& series : chart.series)
    std::erase_if(series.points,
                  [](const ChartPoint& point) { return !std::isfinite(point.x) || !std::isfinite(point.y); });
  return chart;
}

// At round numbers around [low, high].
Axis axis_over(double low, double high, int count) {
  Axis axis;
  axis.ticks = axis_ticks(low, high, count);
  axis.low = axis.ticks.front();
  axis.high = axis.ticks.back();
  return axis;
}

std::string tick_text(double value, double step) {
  std::ostringstream text;
  text.setf(std::ios::fixed);
  text.precision(std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6));
  text << (std::abs(value) < step / 2 ? 0.0 : value);
  return text.str();
}

// 12000 as "12k" when all ticks are whole thousands.
std::string across_text(double value, bool thousands) {
  return thousands && value != 0 ? std::to_string(std::llround(value / 1000)) + "k"
                                 : std::to_string(std::llround(value));
}

class Plot {
 public:
  Plot(cairo_t* canvas, const Axis& across) : canvas_(canvas), across_(across) {}

  double x(double value) const {
    return kLeft + (kWidth - kLeft - kRight) * (value - across_.low) / (across_.high - across_.low);
  }
  static double y(double value, const Axis& axis) {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * (value - axis.low) / (axis.high - axis.low);
  }

  enum class Anchor { start, middle, end };
  // y is the middle of the line.
  double text(const std::string& words, double x, double y, Anchor anchor, const Ink& ink) const {
    const Layout layout = layout_text(canvas_, words, kFontSize);
    const PictureSize size = size_of(layout.get());
    const double shift = anchor == Anchor::start ? 0 : anchor == Anchor::end ? size.width : size.width / 2;
    cairo_set_source_rgb(canvas_, ink.red, ink.green, ink.blue);
    show_text(canvas_, layout.get(), x - shift, y - size.height / 2);
    return size.width;
  }

  void line(double x0, double y0, double x1, double y1, const Ink& ink, double width) const {
    set(ink, width);
    cairo_move_to(canvas_, x0, y0);
    cairo_line_to(canvas_, x1, y1);
    cairo_stroke(canvas_);
    cairo_set_dash(canvas_, nullptr, 0, 0);
  }

  void curve(const Series& series, const Axis& axis, const Ink& ink) const {
    set(ink, series.dots ? 1.75 : 1.25);
    for (const ChartPoint& point : series.points) cairo_line_to(canvas_, x(point.x), y(point.y, axis));
    cairo_stroke(canvas_);
    cairo_set_dash(canvas_, nullptr, 0, 0);
    if (!series.dots && series.points.size() > 1) return;
    for (const ChartPoint& point : series.points) {
      cairo_arc(canvas_, x(point.x), y(point.y, axis), 2.5, 0, 2 * M_PI);
      cairo_fill(canvas_);
    }
  }

 private:
  void set(const Ink& ink, double width) const {
    cairo_set_source_rgb(canvas_, ink.red, ink.green, ink.blue);
    cairo_set_line_width(canvas_, width);
    cairo_set_line_join(canvas_, CAIRO_LINE_JOIN_ROUND);
    cairo_set_dash(canvas_, ink.dashes.data(), static_cast<int>(ink.dashes.size()), 0);
  }
  cairo_t* canvas_;
  Axis across_;
};

const Ink kBlack{0.13, 0.15, 0.18, {}}, kGrey{0.42, 0.45, 0.50, {}}, kGrid{0.90, 0.90, 0.88, {}};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

void paint(cairo_t* canvas, const Chart& chart) {
  Range across, sides[2];
  for (const Series& series : chart.series)
    for (const ChartPoint& point : series.points) {
      across.add(point.x);
      sides[series.right].add(point.y);
    }
  const Axis steps = axis_over(0, !across.empty() && across.high > 0 ? across.high : 1, 8);
  const Plot plot(canvas, steps);
  using Anchor = Plot::Anchor;

  const Axis left = sides[0].empty() ? axis_over(0, 1, 6) : axis_over(sides[0].low, sides[0].high, 6);
  for (const double tick : left.ticks) {
    const double y = Plot::y(tick, left);
    plot.line(kLeft, y, kWidth - kRight, y, kGrid, 1);
    plot.text(tick_text(tick, left.ticks[1] - left.ticks[0]), kLeft - 8, y, Anchor::end, kBlack);
  }
  const bool thousands = std::all_of(steps.ticks.begin(), steps.ticks.end(),
                                     [](double tick) { return std::fmod(tick, 1000) == 0; });
  for (const double tick : steps.ticks)
    plot.text(across_text(tick, thousands), plot.x(tick), kHeight - kBottom + 14, Anchor::middle, kBlack);
  plot.line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, kGrey, 1);
  plot.text(chart.across, (kLeft + kWidth - kRight) / 2, kHeight - kBottom + 36, Anchor::middle, kGrey);

  // A score is seen against 0.
  const Axis right =
      sides[1].empty() ? axis_over(0, 1, 6) : axis_over(std::min(0.0, sides[1].low), sides[1].high, 6);
  double x =
      chart.left.empty() ? kLeft : kLeft + plot.text(chart.left, kLeft - 40, kTop / 2, Anchor::start, kGrey);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    if (series.points.empty()) continue;
    const Ink& ink = kInks[i % std::size(kInks)];
    if (series.right)
      for (const double tick : right.ticks)
        plot.text(tick_text(tick, right.ticks[1] - right.ticks[0]), kWidth - kRight + 8, Plot::y(tick, right),
                  Anchor::start, ink);
    plot.curve(series, series.right ? right : left, ink);
    plot.line(x, kTop / 2, x + 24, kTop / 2, ink, 1.75);
    x += 30;
    x += plot.text(series.name + (series.right ? " (right axis)" : ""), x, kTop / 2, Anchor::start, kBlack) +
         24;
  }
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  if (!(high > low)) high = low + std::max(1e-3, std::abs(low) * 0.1);
  const double rough = (high - low) / std::max(1, count), scale = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * scale;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * scale >= rough * 0.999) step = factor * scale;
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), end = std::ceil(high / step - 1e-9);
  for (double k = first; k <= end; ++k) ticks.push_back(k * step);
  if (ticks.size() < 2) ticks.push_back((end + 1) * step);
  return ticks;
}

std::string draw(const Chart& chart, PictureFormat format) {
  const Chart shown = finite(chart);
  return draw_picture(format, [&](cairo_t* canvas, bool now) {
    if (now) paint(canvas, shown);
    return PictureSize{kWidth, kHeight};
  });
}

}  // namespace fovea
