// Curves over time with the weight of every step in a strip below: what a model of number sequences attended to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explain/picture.h"

namespace fovea {

struct SeriesRow {
  std::string name;                  // of the feature
  std::vector<float> past;           // a value for each step; none: the row has weights only
  std::vector<float> forecast = {};  // drawn after the past, in another colour
  std::vector<float> weights;        // of each step
};

struct SeriesMap {
  std::string title;
  std::vector<SeriesRow> rows;  // all with as many weights
  std::string first = {}, last = {},
              end = {};   // names of the first step, the last one, and the last forecast
  std::string note = {};  // below the picture
};

// The file's bytes. Of more than 16 rows those of most weight are drawn, and the note says so. Throws Error when
// sizes do not match.
std::string draw(const SeriesMap& map, PictureFormat format);

// Shaded blocks for a terminal of `width` columns: a line for each row; a block is the weight of one step or of
// several.
std::string shade(const SeriesMap& map, size_t width = 100);

}  // namespace fovea
