#include "explain/heatmap.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "explain/canvas.h"
#include "explain/shades.h"

namespace fovea {
namespace {

constexpr double kMargin = 12, kGap = 6, kFontSize = 12, kTitleSize = 14;

double share_of(float weight, float largest) {
  return largest > 0 || std::isnan(weight) ? double{weight} / largest : 0.0;
}

double widest(cairo_t* canvas, const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels)
    width = std::max(width, size_of(layout_text(canvas, label, kFontSize).get()).width);
  return width;
}

// Where everything of one panel stands, relative to its corner.
struct PanelPlan {
  double cell = 0;
  double left = 0, top = 0;  // of the grid
  double width = 0, height = 0;
};

PanelPlan plan_panel(cairo_t* canvas, const HeatMap& map) {
  PanelPlan plan;
  const bool labelled = !map.rows.empty() || !map.columns.empty();
  const auto longest = static_cast<double>(std::max<int64_t>({1, map.row_count, map.column_count}));
  plan.cell = map.cell > 0 ? map.cell : labelled ? 20 : std::clamp(256 / longest, 2.0, 20.0);
  plan.left = map.rows.empty() ? 0 : widest(canvas, map.rows) + kGap;
  const double title =
      map.title.empty() ? 0 : size_of(layout_text(canvas, map.title, kTitleSize).get()).height + kGap;
  plan.top = title + (map.columns.empty() ? 0 : widest(canvas, map.columns) + kGap);
  plan.width = plan.left + plan.cell * static_cast<double>(map.column_count);
  plan.height = plan.top + plan.cell * static_cast<double>(map.row_count);
  if (!map.title.empty())
    plan.width = std::max(plan.width, size_of(layout_text(canvas, map.title, kTitleSize).get()).width);
  return plan;
}

void draw_labels(cairo_t* canvas, const HeatMap& map, const PanelPlan& plan) {
  cairo_set_source_rgb(canvas, 0.1, 0.1, 0.1);
  for (size_t i = 0; i < map.rows.size(); ++i) {
    const Layout layout = layout_text(canvas, map.rows[i], kFontSize);
    const PictureSize size = size_of(layout.get());
    cairo_move_to(canvas, plan.left - kGap - size.width,
                  plan.top + plan.cell * (static_cast<double>(i) + 0.5) - size.height / 2);
    pango_cairo_show_layout(canvas, layout.get());
  }
  for (size_t j = 0; j < map.columns.size(); ++j) {
    const Layout layout = layout_text(canvas, map.columns[j], kFontSize);
    const PictureSize size = size_of(layout.get());
    cairo_save(canvas);
    cairo_translate(canvas, plan.left + plan.cell * (static_cast<double>(j) + 0.5) - size.height / 2,
                    plan.top - kGap);
    cairo_rotate(canvas, -M_PI / 2);
    cairo_move_to(canvas, 0, 0);
    pango_cairo_show_layout(canvas, layout.get());
    cairo_restore(canvas);
  }
}

void draw_panel(cairo_t* canvas, const HeatMap& map, const PanelPlan& plan) {
  if (!map.title.empty()) {
    cairo_set_source_rgb(canvas, 0.1, 0.1, 0.1);
    cairo_move_to(canvas, 0, 0);
    pango_cairo_show_layout(canvas, layout_text(canvas, map.title, kTitleSize).get());
  }
  draw_labels(canvas, map, plan);
  // Runs of equal cells are one rectangle: patterns of thousands of cells stay small files.
  cairo_set_antialias(canvas, CAIRO_ANTIALIAS_NONE);
  for (int64_t i = 0; i < map.row_count; ++i) {
    const float* row = map.weights.data() + i * map.column_count;
    for (int64_t j = 0, end; j < map.column_count; j = end) {
      end = j + 1;
      while (end < map.column_count && row[end] == row[j]) ++end;
      const Colour colour = colour_of(share_of(row[j], map.largest));
      cairo_set_source_rgb(canvas, colour.red, colour.green, colour.blue);
      cairo_rectangle(canvas, plan.left + plan.cell * static_cast<double>(j),
                      plan.top + plan.cell * static_cast<double>(i), plan.cell * static_cast<double>(end - j),
                      plan.cell);
      cairo_fill(canvas);
    }
  }
  cairo_set_source_rgb(canvas, 0.6, 0.6, 0.6);
  cairo_set_line_width(canvas, 1);
  cairo_rectangle(canvas, plan.left, plan.top, plan.cell * static_cast<double>(map.column_count),
                  plan.cell * static_cast<double>(map.row_count));
  cairo_stroke(canvas);
  cairo_set_antialias(canvas, CAIRO_ANTIALIAS_DEFAULT);
}

void check(const HeatMap& map) {
  require(map.row_count >= 0 && map.column_count >= 0 &&
              static_cast<int64_t>(map.weights.size()) == map.row_count * map.column_count,
          "heat map: got ", map.weights.size(), " weights, wanted ", map.row_count, " x ", map.column_count);
  const auto fits = [](const std::vector<std::string>& labels, int64_t count) {
    return labels.empty() || static_cast<int64_t>(labels.size()) == count;
  };
  require(fits(map.rows, map.row_count), "heat map: got ", map.rows.size(), " row labels for ", map.row_count,
          " rows");
  require(fits(map.columns, map.column_count), "heat map: got ", map.columns.size(), " column labels for ",
          map.column_count, " columns");
}

// Draws all panels and returns the size taken; `paint` false only measures.
PictureSize draw_figure(cairo_t* canvas, const Figure& figure, bool paint) {
  double y = kMargin, width = 2 * kMargin;
  if (!figure.title.empty()) {
    const Layout title = layout_text(canvas, figure.title, kTitleSize + 2);
    if (paint) {
      cairo_set_source_rgb(canvas, 0, 0, 0);
      cairo_move_to(canvas, kMargin, y);
      pango_cairo_show_layout(canvas, title.get());
    }
    width = 2 * kMargin + size_of(title.get()).width;
    y += size_of(title.get()).height + kMargin;
  }
  const size_t across = static_cast<size_t>(std::max(1, figure.across));
  std::vector<PanelPlan> plans;
  std::vector<double> widths(std::min(across, figure.panels.size()));  // of the columns of panels
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    plans.push_back(plan_panel(canvas, figure.panels[i]));
    widths[i % across] = std::max(widths[i % across], plans[i].width);
  }
  for (size_t begin = 0; begin < figure.panels.size(); begin += across) {
    double x = kMargin, height = 0;
    for (size_t i = begin; i < std::min(figure.panels.size(), begin + across); ++i) {
      const PanelPlan& plan = plans[i];
      if (paint) {
        cairo_save(canvas);
        cairo_translate(canvas, x, y);
        draw_panel(canvas, figure.panels[i], plan);
        cairo_restore(canvas);
      }
      x += widths[i % across] + kMargin;
      height = std::max(height, plan.height);
    }
    width = std::max(width, x);
    y += height + kMargin;
  }
  return {std::ceil(width), std::ceil(y)};
}

}  // namespace

std::string draw(const Figure& figure, PictureFormat format) {
  for (const HeatMap& panel : figure.panels) check(panel);
  return draw_picture(format,
                      [&](cairo_t* canvas, bool paint) { return draw_figure(canvas, figure, paint); });
}

std::string shade(const HeatMap& map) {
  check(map);
  size_t widest_row = 0;
  for (const std::string& row : map.rows) widest_row = std::max(widest_row, terminal_width(row));
  std::string text = map.title.empty() ? "" : map.title + "\n";
  if (!map.columns.empty()) {
    text += std::string(widest_row + 1, ' ');
    for (int64_t j = 0; j < map.column_count; ++j) {
      text += j < 9 ? " " : "";
      text += std::to_string((j + 1) % 100);
    }
    text += "\n";
  }
  for (int64_t i = 0; i < map.row_count; ++i) {
    if (!map.rows.empty()) {
      const std::string& label = map.rows[static_cast<size_t>(i)];
      text += std::string(widest_row - terminal_width(label), ' ') + label;
    }
    text += "|";
    for (int64_t j = 0; j < map.column_count; ++j) {
      const std::string_view block =
          block_of(share_of(map.weights[static_cast<size_t>(i * map.column_count + j)], map.largest));
      text.append(block).append(block);
    }
    text += "|\n";
  }
  for (size_t j = 0; j < map.columns.size(); ++j) {
    text += j > 0 ? "  " : "";
    text += std::to_string(j + 1);
    text += " " + map.columns[j];
  }
  if (!map.columns.empty()) text += "\n";
  return text;
}

}  // namespace fovea
