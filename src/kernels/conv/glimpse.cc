#include "kernels/conv/glimpse.h"

#include <algorithm>

#include "base/parallel.h"

namespace fovea::kernels {
namespace {

// One window of one picture. Sums the rows of pixels that belong to a row of cells, each pixel into its cell.
void window(const GlimpseShape& s, const float* picture, const float* location, int scale, float* y) {
  const int64_t zoom = int64_t{1} << scale, side = s.patch * zoom, channels = s.channels;
  const int64_t top = glimpse_start(location[0], s.height, side),
                left = glimpse_start(location[1], s.width, side);
  const int64_t first = std::max<int64_t>(0, left), last = std::min(s.width, left + side);
  const float share = 1 / static_cast<float>(zoom * zoom);
  for (int64_t cell_row = 0; cell_row < s.patch; ++cell_row) {
    float* const cells = y + cell_row * s.patch * channels;
    std::fill(cells, cells + s.patch * channels, 0.0f);
    const int64_t begin = std::max<int64_t>(0, top + cell_row * zoom),
                  end = std::min(s.height, top + (cell_row + 1) * zoom);
    for (int64_t row = begin; row < end; ++row) {
      const float* const pixels = picture + row * s.width * channels;
      if (scale == 0 && first < last)
        std::copy(pixels + first * channels, pixels + last * channels, cells + (first - left) * channels);
      else
        for (int64_t column = first; column < last; ++column)
          for (int64_t c = 0; c < channels; ++c)
            cells[((column - left) >> scale) * channels + c] += pixels[column * channels + c];
    }
    if (scale > 0)
      for (int64_t i = 0; i < s.patch * channels; ++i) cells[i] *= share;
  }
}

}  // namespace

void glimpses(const GlimpseShape& s, const float* x, const float* locations, float* y) {
  const int64_t picture = s.height * s.width * s.channels, cells = s.patch * s.patch * s.channels;
  parallel_for(s.rows(), 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t scale = 0; scale < s.scales; ++scale)
        window(s, x + row / s.copies * picture, locations + 2 * row, static_cast<int>(scale),
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
