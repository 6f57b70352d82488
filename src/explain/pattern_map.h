// Pictures of attention patterns: dark where a query (down) sees a key (across).
#pragma once

#include <string>

#include "attention/compile.h"
#include "explain/heatmap.h"

namespace fovea {

// One panel for each different head, titled by the heads it stands for when there are several. Batch entry 0.
Figure pattern_figure(const Pattern& pattern, const PlanSizes& sizes);

// Half blocks, two queries a line: squares in a terminal.
std::string pattern_blocks(const Figure& figure);

// The same figure as a small SVG: one path a panel.
std::string pattern_svg(const Figure& figure);

}  // namespace fovea
