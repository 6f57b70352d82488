#include "kernels/conv/glimpse.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/scratch.h"

namespace fovea::kernels {
namespace {

// Sums of neighbours: y[i] = factor (x[2 i] + x[2 i + 1]) for i in [0, count), each of `channels` values.
void halve(const float* __restrict__ x, int64_t count, int64_t channels, float factor,
           float* __restrict__ y) {
  if (channels == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = factor * (x[2 * i] + x[2 * i + 1]);
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t c = 0; c < channels; ++c)
        y[i * channels + c] = factor * (x[2 * i * channels + c] + x[(2 * i + 1) * channels + c]);
  }
}

// One window of one picture. The rows of pixels that belong to a row of cells are summed, then, scale times, neighbours.
void window(const GlimpseShape& s, const float* picture, const float* location, int scale,
            const ReduceKernels& kernels, float* y) {
  const int64_t zoom = int64_t{1} << scale, side = s.patch * zoom, channels = s.channels;
  const int64_t top = glimpse_start(location[0], s.height, side),
                left = glimpse_start(location[1], s.width, side);
  const int64_t first = std::max<int64_t>(0, left), last = std::min(s.width, left + side);
  const auto inside = (last - first) * channels;
  if (inside <= 0) {
    std::fill_n(y, s.patch * s.patch * channels, 0.0f);
    return;
  }
  float* const sums = scratch_floats(0, side * channels);
  float* const halved = scratch_floats(1, side * channels);
  for (int64_t cell_row = 0; cell_row < s.patch; ++cell_row, y += s.patch * channels) {
    const int64_t begin = std::max<int64_t>(0, top + cell_row * zoom),
                  end = std::min(s.height, top + (cell_row + 1) * zoom);
    if (begin >= end) {
      std::fill_n(y, s.patch * channels, 0.0f);
      continue;
    }
    float* from = scale == 0 ? y : sums;
    float* const seen = from + (first - left) * channels;
    std::fill(from, seen, 0.0f);
    std::fill(seen + inside, from + side * channels, 0.0f);
    const float* const pixels = picture + (begin * s.width + first) * channels;
    if (end - begin == 1)
      std::copy_n(pixels, inside, seen);
    else
      kernels.sum_rows(pixels, end - begin, inside, s.width * channels, seen);
    for (int64_t cells = side / 2; cells >= s.patch; cells /= 2) {
      const bool done = cells == s.patch;
      float* const to = done ? y : from == sums ? halved : sums;
      halve(from, cells, channels, done ? 1 / static_cast<float>(zoom * zoom) : 1.0f, to);
      from = to;
    }
  }
}

}  // namespace

void glimpses(const GlimpseShape& s, const float* x, const float* locations, float* y,
              const ReduceKernels& kernels) {
  const int64_t picture = s.height * s.width * s.channels, cells = s.patch * s.patch * s.channels;
  parallel_for(s.rows(), 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t scale = 0; scale < s.scales; ++scale)
        window(s, x + row / s.copies * picture, locations + 2 * row, static_cast<int>(scale), kernels,
               y + (row * s.scales + scale) * cells);
  });
}

namespace scalar {

void glimpses(const GlimpseShape& s, const float* x, const float* locations, float* y) {
  const auto pixel = [&](int64_t row, int64_t v, int64_t h, int64_t c) {
    const bool inside = v >= 0 && v < s.height && h >= 0 && h < s.width;
    return inside ? x[((row / s.copies * s.height + v) * s.width + h) * s.channels + c] : 0.0f;
  };
  for (int64_t row = 0; row < s.rows(); ++row)
    for (int64_t scale = 0; scale < s.scales; ++scale) {
      const int64_t zoom = int64_t{1} << scale, side = s.patch * zoom;
      const int64_t top = glimpse_start(locations[2 * row], s.height, side),
                    left = glimpse_start(locations[2 * row + 1], s.width, side);
      for (int64_t i = 0; i < s.patch; ++i)
        for (int64_t j = 0; j < s.patch; ++j)
          for (int64_t c = 0; c < s.channels; ++c) {
            float sum = 0;
            for (int64_t v = 0; v < zoom; ++v)
              for (int64_t h = 0; h < zoom; ++h)
                sum += pixel(row, top + i * zoom + v, left + j * zoom + h, c);
            *y++ = sum / static_cast<float>(zoom * zoom);
          }
    }
}

}  // namespace scalar

}  // namespace fovea::kernels
