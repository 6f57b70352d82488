// How the filters of a convolution are laid into vectors.
#pragma once

#include "kernels/conv/conv_axis.h"
#include "kernels/conv/conv_levels.h"

namespace fovea::kernels {

// Few filters do not fill the widest vectors.
inline const ConvDense& width_for(const ConvKernels& kernels, int64_t filters) {
  const int64_t wide = kernels.wide.lanes, narrow = kernels.narrow.lanes;
  const bool fits = ceil_div(filters, narrow) * narrow < ceil_div(filters, wide) * wide;
  return fits && filters <= 3 * narrow ? kernels.narrow : kernels.wide;
}

// The vectors of a group's filters, in panels of nearly equal width.
struct ConvPanels {
  ConvPanels(int64_t filters, int64_t vector_lanes, int64_t most)
      : all(filters), lanes(vector_lanes), vectors(ceil_div(all, lanes)), count(ceil_div(vectors, most)) {}
  int64_t begin(int64_t panel) const { return vectors * panel / count * lanes; }
  int64_t floats(int64_t panel) const { return begin(panel + 1) - begin(panel); }
  int64_t filters(int64_t panel) const { return std::min(all, begin(panel + 1)) - begin(panel); }
  int width(int64_t panel) const { return static_cast<int>(floats(panel) / lanes); }
  int64_t all, lanes, vectors, count;
};

}  // namespace fovea::kernels
