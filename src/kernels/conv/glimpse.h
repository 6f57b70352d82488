// The glimpse sensor of recurrent visual attention (Mnih et al. 2014): square windows of doubling side around a
// location, each averaged down to the same few pixels, so that the middle is sharp and the surroundings are coarse.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/vector/reduce.h"

namespace fovea::kernels {

struct GlimpseShape {
  int64_t pictures = 0, height = 0, width = 0, channels = 1;
  int64_t copies = 1;  // glimpses of each picture: row r looks at picture r / copies
  int64_t patch = 8;   // side of a window after averaging, in pixels
  int64_t scales = 1;  // window s covers patch * 2^s pixels a side

  int64_t rows() const { return pictures * copies; }
  int64_t features() const { return scales * patch * patch * channels; }
};

// The first pixel of a window of `side` pixels along an axis of `size`. location: -1 is the first edge of the
// picture, 1 the last; what lies beyond counts as the edge, and NaN as the first. May be negative: a window may
// leave the picture.
inline int64_t glimpse_start(float location, int64_t size, int64_t side) {
  const double within = location >= -1 ? (location <= 1 ? double{location} : 1.0) : -1.0;
  return static_cast<int64_t>(
      std::floor((within + 1) / 2 * static_cast<double>(size) - static_cast<double>(side) / 2 + 0.5));
}

// x: [pictures, height, width, channels]; locations: [rows, 2], vertical then horizontal;
// y: [rows, scales, patch, patch, channels], the mean of the pixels of each cell, with zeros outside of the picture.
void glimpses(const GlimpseShape& shape, const float* x, const float* locations, float* y,
              const ReduceKernels& kernels = reduce_kernels());

// The same, written to be read.
namespace scalar {
void glimpses(const GlimpseShape& shape, const float* x, const float* locations, float* y);
}  // namespace scalar

}  // namespace fovea::kernels
