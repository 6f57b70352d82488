#include "explain/pattern_map.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace fovea {
namespace {

using kernels::AttentionPlan;
using kernels::PlanSegment;
using kernels::PlanTile;
using kernels::SegmentMask;

bool visible(const AttentionPlan& plan, const PlanTile& tile, const PlanSegment& segment, int64_t r,
             int64_t j) {
  switch (segment.mask) {
    case SegmentMask::full:
      return true;
    case SegmentMask::interval: {
      const int32_t* pair = plan.intervals.data() + segment.mask_offset + 2 * r;
      return pair[0] <= j && j < pair[1];
    }
    case SegmentMask::bits: {
      const int64_t words = (tile.row_count + 31) / 32;
      return plan.bits[static_cast<size_t>(segment.mask_offset + j * words + r / 32)] >> r % 32 & 1;
    }
  }
  return false;
}

// The pairs that the plan visits for one head of the first batch entry: what is drawn is what is computed,
// and a pair costs no question to the pattern.
HeatMap head_map(const AttentionPlan& plan, int64_t head) {
  HeatMap map{.title = {},
              .rows = {},
              .columns = {},
              .row_count = plan.query_count,
              .column_count = plan.key_count,
              .weights = std::vector<float>(static_cast<size_t>(plan.query_count * plan.key_count))};
  const auto group = static_cast<size_t>(plan.head_groups > 1 ? head : 0);
  for (int32_t t = plan.group_tiles[group]; t < plan.group_tiles[group + 1]; ++t) {
    const PlanTile& tile = plan.tiles[static_cast<size_t>(t)];
    for (int32_t s = tile.segment_begin; s < tile.segment_end; ++s) {
      const PlanSegment& segment = plan.segments[static_cast<size_t>(s)];
      for (int64_t j = 0; j < segment.key_count; ++j) {
        const int64_t key = segment.gather >= 0 ? plan.indices[static_cast<size_t>(segment.gather + j)]
                                                : segment.key_first + j * segment.key_step;
        for (int64_t r = 0; r < tile.row_count; ++r)
          if (visible(plan, tile, segment, r, j))
            map.weights[static_cast<size_t>((tile.row_first + r * tile.row_step) * map.column_count + key)] =
                1;
      }
    }
  }
  return map;
}

bool sees(const HeatMap& map, int64_t i, int64_t j) {
  return i < map.row_count && map.weights[static_cast<size_t>(i * map.column_count + j)] > 0;
}

}  // namespace

Figure pattern_figure(const Pattern& pattern, const PlanSizes& sizes) {
  Figure figure;
  const AttentionPlan plan = compile(pattern, sizes);
  // Heads of one group are one panel without a title.
  for (int64_t head = 0; head < (plan.head_groups > 1 ? sizes.heads : 1); ++head) {
    HeatMap map = head_map(plan, head);
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
