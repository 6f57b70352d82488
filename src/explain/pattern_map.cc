#include "explain/pattern_map.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace fovea {
namespace {

HeatMap head_map(const Pattern& pattern, const PlanSizes& sizes, int64_t head) {
  HeatMap map{.title = {},
              .rows = {},
              .columns = {},
              .row_count = sizes.queries,
              .column_count = sizes.keys,
              .weights = {}};
  map.weights.reserve(static_cast<size_t>(sizes.queries * sizes.keys));
  for (int64_t i = 0; i < sizes.queries; ++i)
    for (int64_t j = 0; j < sizes.keys; ++j)
      map.weights.push_back(allowed(
          pattern,
          {.queries = sizes.queries, .keys = sizes.keys, .batch = 0, .head = head, .query = i, .key = j}));
  return map;
}

bool sees(const HeatMap& map, int64_t i, int64_t j) {
  return i < map.row_count && map.weights[static_cast<size_t>(i * map.column_count + j)] > 0;
}

}  // namespace

Figure pattern_figure(const Pattern& pattern, const PlanSizes& sizes) {
  Figure figure;
  for (int64_t head = 0; head < sizes.heads; ++head) {
    HeatMap map = head_map(pattern, sizes, head);
    HeatMap* twin = nullptr;
    for (HeatMap& panel : figure.panels)
      if (panel.weights == map.weights) twin = &panel;
    if (twin == nullptr) {
      figure.panels.push_back(std::move(map));
      twin = &figure.panels.back();
    }
    twin->title += (twin->title.empty() ? "head " : ", ") + std::to_string(head);
  }
  if (figure.panels.size() == 1) figure.panels[0].title.clear();
  return figure;
}

std::string pattern_blocks(const Figure& figure) {
  static constexpr const char* kBlocks[] = {"·", "▀", "▄", "█"};
  std::string text;
  for (const HeatMap& map : figure.panels) {
    if (!map.title.empty()) text += map.title + "\n";
    for (int64_t i = 0; i < map.row_count; i += 2) {
      for (int64_t j = 0; j < map.column_count; ++j)
        text += kBlocks[(sees(map, i, j) ? 1 : 0) + (sees(map, i + 1, j) ? 2 : 0)];
      text += '\n';
    }
  }
  return text;
}

std::string pattern_svg(const Figure& figure) {
  constexpr int64_t kCell = 4, kGap = 16;
  std::ostringstream body;
  int64_t left = 1, height = 0;
  for (const HeatMap& map : figure.panels) {
    const int64_t top = map.title.empty() ? 1 : 18;
    if (!map.title.empty())
      body << "<text x=\"" << left << "\" y=\"13\" font-family=\"sans-serif\" font-size=\"12\">" << map.title
           << "</text>\n";
    body << "<path transform=\"translate(" << left << ' ' << top << ") scale(" << kCell
         << ")\" fill=\"#215fa5\" d=\"";
    for (int64_t i = 0; i < map.row_count; ++i)
      for (int64_t j = 0, end; j < map.column_count; j = end + 1) {
        end = j;
        while (end < map.column_count && sees(map, i, end)) ++end;
        if (end > j) body << 'M' << j << ' ' << i << 'h' << end - j << "v1h" << j - end << 'z';
      }
    const int64_t width = kCell * map.column_count, tall = kCell * map.row_count;
    body << "\"/>\n<rect x=\"" << left << "\" y=\"" << top << "\" width=\"" << width << "\" height=\"" << tall
         << "\" fill=\"none\" stroke=\"#999\"/>\n";
    left += width + kGap;
    height = std::max(height, top + tall + 1);
  }
  const int64_t width = std::max<int64_t>(1, left - kGap + 1);
  return message("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
                 "\" shape-rendering=\"crispEdges\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
                 body.str(), "</svg>\n");
}

}  // namespace fovea
