// Heat maps of weights, drawn as PNG, SVG or PDF, or as shaded blocks in a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

// A matrix with a label for each row and column. Rows are queries (a translation, downwards), columns are
// keys (the source, across). Long labels are cut and end with an ellipsis.
struct HeatMap {
  std::string title;                 // may be empty
  std::vector<std::string> rows;     // a label for every row, or none at all
  std::vector<std::string> columns;  // a label for every column, or none at all
  int64_t row_count = 0, column_count = 0;
  // [row_count, column_count], row-major; negative ones have a colour of their own, NaN is drawn as missing
  std::vector<float> weights;
  float largest = 1;      // the size of a weight that is drawn darkest
  double cell = 0;        // side of a cell in a picture; 0: 20 with labels, else what fits
  double row_height = 0;  // of cells that are no squares; 0: as `cell`
  // Said below the map, a line each: what a mark in the labels means
  std::vector<std::string> notes = {};
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

// Shaded blocks for a terminal of `width` columns: a line for each row, labels at the left, column numbers
// above and their labels below. A map that is wider is cut into several, one below the other.
std::string shade(const HeatMap& map, size_t width = 100);

}  // namespace fovea
