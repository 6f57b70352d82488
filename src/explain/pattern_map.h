// Pictures of attention patterns: dark where a query (row) may attend to a key (column).
#pragma once

#include <string>

#include "attention/compile.h"
#include "explain/heatmap.h"

namespace fovea {

// The pattern of batch entry 0: one panel for each distinct head, titled with the heads that share it if
// there are several panels.
Figure pattern_figure(const Pattern& pattern, const PlanSizes& sizes);

// For a terminal: half blocks, two queries per line, so that cells are square.
std::string pattern_blocks(const Figure& figure);

// The same figure as a small SVG file: one path per panel.
std::string pattern_svg(const Figure& figure);

}  // namespace fovea
