#include "explain/curve.h"

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
  std::vector<double> dashes;  // told apart in print by more than colour
};

const Ink kTraining{0.55, 0.62, 0.70, {}};
const Ink kValidation{0.08, 0.31, 0.55, {}};
const Ink kScore{0.70, 0.33, 0.04, {6, 3}};

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks;
};

std::vector<CurvePoint> finite(const std::vector<CurvePoint>& points) {
  std::vector<CurvePoint> kept;
  for (const CurvePoint& point : points)
    if (std::isfinite(point.step) && std::isfinite(point.value)) kept.push_back(point);
  return kept;
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
std::string step_text(double value, bool thousands) {
  return thousands && value != 0 ? std::to_string(std::llround(value / 1000)) + "k"
                                 : std::to_string(std::llround(value));
}

class Plot {
 public:
  Plot(cairo_t* canvas, const Axis& steps) : canvas_(canvas), steps_(steps) {}

  double x(double step) const {
    return kLeft + (kWidth - kLeft - kRight) * (step - steps_.low) / (steps_.high - steps_.low);
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
    cairo_move_to(canvas_, x - shift, y - size.height / 2);
    pango_cairo_show_layout(canvas_, layout.get());
    return size.width;
  }

  void line(double x0, double y0, double x1, double y1, const Ink& ink, double width) const {
    set(ink, width);
    cairo_move_to(canvas_, x0, y0);
    cairo_line_to(canvas_, x1, y1);
    cairo_stroke(canvas_);
    cairo_set_dash(canvas_, nullptr, 0, 0);
  }

  void curve(const std::vector<CurvePoint>& points, const Axis& axis, const Ink& ink, double width,
             bool dots) const {
    set(ink, width);
    cairo_new_path(canvas_);  // text leaves a point behind
    for (const CurvePoint& point : points) cairo_line_to(canvas_, x(point.step), y(point.value, axis));
    cairo_stroke(canvas_);
    cairo_set_dash(canvas_, nullptr, 0, 0);
    for (const CurvePoint& point : points) {
      if (!dots && points.size() > 1) break;
      cairo_arc(canvas_, x(point.step), y(point.value, axis), 2.5, 0, 2 * M_PI);
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
  Axis steps_;
};

const Ink kBlack{0.13, 0.15, 0.18, {}}, kGrey{0.42, 0.45, 0.50, {}}, kGrid{0.90, 0.90, 0.88, {}};

void paint(cairo_t* canvas, const std::vector<CurvePoint>& training,
           const std::vector<CurvePoint>& validation, const std::vector<CurvePoint>& score,
           const std::string& score_name) {
  const auto range = [](std::initializer_list<const std::vector<CurvePoint>*> lists, auto member) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto* list : lists)
      for (const CurvePoint& point : *list) {
        low = std::min(low, point.*member);
        high = std::max(high, point.*member);
      }
    return std::pair(low, high);
  };
  const auto last = range({&training, &validation, &score}, &CurvePoint::step).second;
  const Axis steps = axis_over(0, std::isfinite(last) && last > 0 ? last : 1, 8);
  const Plot plot(canvas, steps);
  using Anchor = Plot::Anchor;

  auto [low, high] = range({&training, &validation}, &CurvePoint::value);
  if (!std::isfinite(low)) low = 0, high = 1;
  const Axis losses = axis_over(low, high, 6);
  const double loss_step = losses.ticks[1] - losses.ticks[0];
  for (const double tick : losses.ticks) {
    const double y = Plot::y(tick, losses);
    plot.line(kLeft, y, kWidth - kRight, y, kGrid, 1);
    plot.text(tick_text(tick, loss_step), kLeft - 8, y, Anchor::end, kBlack);
  }
  const bool thousands = std::all_of(steps.ticks.begin(), steps.ticks.end(),
                                     [](double tick) { return std::fmod(tick, 1000) == 0; });
  for (const double tick : steps.ticks)
    plot.text(step_text(tick, thousands), plot.x(tick), kHeight - kBottom + 14, Anchor::middle, kBlack);
  plot.line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, kGrey, 1);
  plot.text("step", (kLeft + kWidth - kRight) / 2, kHeight - kBottom + 36, Anchor::middle, kGrey);

  plot.curve(training, losses, kTraining, 1.25, false);
  plot.curve(validation, losses, kValidation, 1.75, true);
  if (!score.empty()) {
    const auto [worst, best] = range({&score}, &CurvePoint::value);
    const Axis scores = axis_over(std::min(0.0, worst), best > worst || best > 0 ? best : worst + 1, 6);
    for (const double tick : scores.ticks)
      plot.text(tick_text(tick, scores.ticks[1] - scores.ticks[0]), kWidth - kRight + 8,
                Plot::y(tick, scores), Anchor::start, kScore);
    plot.curve(score, scores, kScore, 1.75, true);
  }

  double x = kLeft;
  const auto key = [&](const std::string& name, const Ink& ink, bool there) {
    if (!there) return;
    plot.line(x, kTop / 2, x + 24, kTop / 2, ink, 1.75);
    x += 30;
    x += plot.text(name, x, kTop / 2, Anchor::start, kBlack) + 24;
  };
  key("training loss", kTraining, !training.empty());
  key("validation loss", kValidation, !validation.empty());
  key(score_name + " (right axis)", kScore, !score.empty());
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

std::string draw(const LearningCurve& curve, PictureFormat format) {
  const auto training = finite(curve.training_loss), validation = finite(curve.validation_loss),
             score = finite(curve.score);
  return draw_picture(format, [&](cairo_t* canvas, bool now) {
    if (now) paint(canvas, training, validation, score, curve.score_name);
    return PictureSize{kWidth, kHeight};
  });
}

}  // namespace fovea
