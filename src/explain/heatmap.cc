// Draws heat maps with row and column labels as a picture, or as shaded blocks of text.
#include "explain/heatmap.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "explain/canvas.h"
#include "explain/shades.h"

namespace fovea {
namespace {

constexpr double kMargin = 12, kGap = 6, kFontSize = 12, kTitleSize = 14;
constexpr double kWidestLabel = 180;  // in pixels
constexpr double kNoteSize = 11, kWidestNote = 420;

double share_of(float weight, float largest) {
  return largest > 0 || std::isnan(weight) ? double{weight} / largest : 0.0;
}

Layout label_text(cairo_t* canvas, const std::string& label) {
  return layout_text(canvas, label, kFontSize, {.width = kWidestLabel});
}

double widest(cairo_t* canvas, const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels)
    width = std::max(width, size_of(label_text(canvas, label).get()).width);
  return width;
}

// Where everything of one panel stands, relative to its corner.
struct PanelPlan {
  double cell = 0, row = 0;  // width and height of a cell
  double left = 0, top = 0;  // of the grid
  double width = 0, height = 0;
};

PanelPlan plan_panel(cairo_t* canvas, const HeatMap& map) {
  PanelPlan plan;
  const bool labelled = !map.rows.empty() || !map.columns.empty();
  const auto longest = static_cast<double>(std::max<int64_t>({1, map.row_count, map.column_count}));
  plan.cell = map.cell > 0 ? map.cell : labelled ? 20 : std::clamp(256 / longest, 2.0, 20.0);
  plan.row = map.row_height > 0 ? map.row_height : plan.cell;
  plan.left = map.rows.empty() ? 0 : widest(canvas, map.rows) + kGap;
  const double title =
      map.title.empty() ? 0 : size_of(layout_text(canvas, map.title, kTitleSize).get()).height + kGap;
  plan.top = title + (map.columns.empty() ? 0 : widest(canvas, map.columns) + kGap);
  plan.width = plan.left + plan.cell * static_cast<double>(map.column_count);
  plan.height = plan.top + plan.row * static_cast<double>(map.row_count);
  if (!map.title.empty())
    plan.width = std::max(plan.width, size_of(layout_text(canvas, map.title, kTitleSize).get()).width);
  return plan;
}

void draw_labels(cairo_t* canvas, const HeatMap& map, const PanelPlan& plan) {
  cairo_set_source_rgb(canvas, 0.1, 0.1, 0.1);
  for (size_t i = 0; i < map.rows.size(); ++i) {
    const Layout layout = label_text(canvas, map.rows[i]);
    const PictureSize size = size_of(layout.get());
    show_text(canvas, layout.get(), plan.left - kGap - size.width,
              plan.top + plan.row * (static_cast<double>(i) + 0.5) - size.height / 2);
  }
  for (size_t j = 0; j < map.columns.size(); ++j) {
    const Layout layout = label_text(canvas, map.columns[j]);
    const PictureSize size = size_of(layout.get());
    cairo_save(canvas);
    cairo_translate(canvas, plan.left + plan.cell * (static_cast<double>(j) + 0.5) - size.height / 2,
                    plan.top - kGap);
    cairo_rotate(canvas, -M_PI / 2);
    show_text(canvas, layout.get(), 0, 0);
    cairo_restore(canvas);
  }
}

void draw_panel(cairo_t* canvas, const HeatMap& map, const PanelPlan& plan) {
  if (!map.title.empty()) {
    cairo_set_source_rgb(canvas, 0.1, 0.1, 0.1);
    show_text(canvas, layout_text(canvas, map.title, kTitleSize).get(), 0, 0);
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
                      plan.top + plan.row * static_cast<double>(i), plan.cell * static_cast<double>(end - j),
                      plan.row);
      cairo_fill(canvas);
    }
  }
  cairo_set_source_rgb(canvas, 0.6, 0.6, 0.6);
  cairo_set_line_width(canvas, 1);
  cairo_rectangle(canvas, plan.left, plan.top, plan.cell * static_cast<double>(map.column_count),
                  plan.row * static_cast<double>(map.row_count));
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

bool has_negative(const HeatMap& map) {
  return std::any_of(map.weights.begin(), map.weights.end(), [](float weight) { return weight < 0; });
}

// Panels share labels, and so what is said of them: each note once.
std::vector<std::string> notes_of(const Figure& figure) {
  std::vector<std::string> notes;
  for (const HeatMap& panel : figure.panels)
    for (const std::string& note : panel.notes)
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  if (std::any_of(figure.panels.begin(), figure.panels.end(), has_negative))
    notes.emplace_back(kNegativeColourLegend);
  return notes;
}

// Draws all panels and returns the size taken; `paint` false only measures.
PictureSize draw_figure(cairo_t* canvas, const Figure& figure, bool paint) {
  double y = kMargin, width = 2 * kMargin;
  if (!figure.title.empty()) {
    const Layout title = layout_text(canvas, figure.title, kTitleSize + 2);
    if (paint) {
      cairo_set_source_rgb(canvas, 0, 0, 0);
      show_text(canvas, title.get(), kMargin, y);
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
  for (const std::string& said : notes_of(figure)) {
    const Layout note = layout_text(canvas, said, kNoteSize, {.width = kWidestNote, .lines = 3});
    if (paint) {
      cairo_set_source_rgb(canvas, 0.3, 0.3, 0.3);
      show_text(canvas, note.get(), kMargin, y);
    }
    width = std::max(width, 2 * kMargin + size_of(note.get()).width);
    y += size_of(note.get()).height + kMargin;
  }
  return {std::ceil(width), std::ceil(y)};
}

// Columns [begin, end) of a map in shaded blocks.
class TerminalMap {
 public:
  TerminalMap(const HeatMap& map, size_t width)
      : map_(map),
        width_(width),
        // Where columns have no names there is more room for those of the rows.
        widest_label_(std::max<size_t>(12, width / (map.columns.empty() ? 2 : 3))) {
    for (const std::string& row : map.rows) {
      rows_.push_back(shortened(row, widest_label_));
      side_ = std::max(side_, terminal_width(rows_.back()));
    }
    // A numbered column is wider than the largest number, so that the numbers stand apart.
    if (!map.columns.empty())
      cell_ = std::to_string(map.column_count).size() + 1;
    else if (side_ + 2 + 2 * static_cast<size_t>(map.column_count) > width)
      cell_ = 1;
  }

  int64_t columns_across() const {
    const size_t taken = side_ + 2;
    return std::max<int64_t>(1, width_ > taken ? static_cast<int64_t>((width_ - taken) / cell_) : 1);
  }

  std::string part(int64_t begin, int64_t end) const {
    std::string text;
    if (!map_.columns.empty()) {
      text += std::string(side_ + 1, ' ');
      for (int64_t j = begin; j < end; ++j) text += padded(std::to_string(j + 1), cell_);
      text += "\n";
    }
    for (int64_t i = 0; i < map_.row_count; ++i) {
      if (!rows_.empty()) text += padded(rows_[static_cast<size_t>(i)], side_);
      text += "|";
      for (int64_t j = begin; j < end; ++j) {
        const float weight = map_.weights[static_cast<size_t>(i * map_.column_count + j)];
        for (size_t k = 0; k < cell_; ++k) text += block_of(share_of(weight, map_.largest));
      }
      text += "|\n";
    }
    return map_.columns.empty() ? text : text + legend(begin, end);
  }

 private:
  static std::string padded(const std::string& text, size_t columns) {
    return std::string(columns - terminal_width(text), ' ') + text;
  }

  // "1 i  2 like  3 food", broken into lines that fit.
  std::string legend(int64_t begin, int64_t end) const {
    std::string text;
    size_t at = 0;
    for (int64_t j = begin; j < end; ++j) {
      const std::string entry =
          std::to_string(j + 1) + " " + shortened(map_.columns[static_cast<size_t>(j)], widest_label_);
      const size_t columns = terminal_width(entry);
      if (at > 0) {
        const bool fits = at + 2 + columns <= width_;
        text += fits ? "  " : "\n";
        at = fits ? at + 2 : 0;
      }
      text += entry;
      at += columns;
    }
    return text + "\n";
  }

  const HeatMap& map_;
  size_t width_, widest_label_, cell_ = 2, side_ = 0;
  std::vector<std::string> rows_;
};

}  // namespace

std::string draw(const Figure& figure, PictureFormat format) {
  for (const HeatMap& panel : figure.panels) check(panel);
  return draw_picture(format,
                      [&](cairo_t* canvas, bool paint) { return draw_figure(canvas, figure, paint); });
}

std::string shade(const HeatMap& map, size_t width) {
  check(map);
  const TerminalMap terminal(map, width);
  std::string text = map.title.empty() ? "" : map.title + "\n";
  const int64_t across = terminal.columns_across();
  for (int64_t begin = 0; begin == 0 || begin < map.column_count; begin += across) {
    if (begin > 0) text += "\n";
    text += terminal.part(begin, std::min(map.column_count, begin + across));
  }
  for (const std::string& note : map.notes) text += wrapped(note, width);
  if (has_negative(map)) text += wrapped(kNegativeBlockLegend, width);
  return text;
}

}  // namespace fovea
