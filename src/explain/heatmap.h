// Heat maps of weights: one drawing, as PNG, SVG, PDF or shaded blocks in a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

// A matrix with words at its sides. Rows are queries (a translation, going down), columns keys (the source,
// across).
struct HeatMap {
  std::string title;                 // may be empty
  std::vector<std::string> rows;     // one label a row, or none at all
  std::vector<std::string> columns;  // one label a column, or none at all
  int64_t row_count = 0, column_count = 0;
  std::vector<float> weights;  // [row_count, column_count], row-major; NaN is drawn as missing
  float largest = 1;           // the weight drawn darkest
  double cell = 0;             // its side in a picture; 0: 20 with labels, else what fits
};

// Panels side by side, wrapped into rows of `across`.
struct Figure {
  std::string title;
  std::vector<HeatMap> panels;
  int across = 4;
};

// The file's bytes. Throws Error when labels or weights do not match the sizes, or the picture would be too
// large.
std::string draw(const Figure& figure, PictureFormat format);
inline std::string draw(const HeatMap& map, PictureFormat format) {
  return draw(Figure{"", {map}, 1}, format);
}

// Shaded blocks, one line a row, labels at the left and numbered keys above: for a terminal.
std::string shade(const HeatMap& map);

}  // namespace fovea
