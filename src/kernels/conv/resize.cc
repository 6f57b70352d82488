#include "kernels/conv/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"

namespace fovea::kernels {
namespace {

// The two neighbours of a place along one axis, and the share of the second.
struct Neighbours {
  int64_t first = 0, second = 0;
  float share = 0;
};

std::vector<Neighbours> neighbours_of(int64_t from, int64_t to) {
  std::vector<Neighbours> all(static_cast<size_t>(to));
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (int64_t i = 0; i < to; ++i) {
    const float place = std::max(0.0f, (static_cast<float>(i) + 0.5f) * scale - 0.5f);
    const int64_t first = std::min(static_cast<int64_t>(place), from - 1);
    all[static_cast<size_t>(i)] = {first, std::min(first + 1, from - 1), place - static_cast<float>(first)};
  }
  return all;
}

}  // namespace

void resize_forward(const ResizeShape& s, const float* x, float* y) {
  if (s.images * s.out_height * s.out_width * s.channels == 0) return;
  const std::vector<Neighbours> rows = neighbours_of(s.height, s.out_height),
                                columns = neighbours_of(s.width, s.out_width);
  const int64_t channels = s.channels, line = s.width * channels;
  const int64_t grain = std::max<int64_t>(1, 32768 / (4 * s.out_width * channels));
  parallel_for(s.images * s.out_height, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Neighbours& row = rows[static_cast<size_t>(r % s.out_height)];
      const float* image = x + r / s.out_height * s.height * line;
      const float *above = image + row.first * line, *below = image + row.second * line;
      float* to = y + r * s.out_width * channels;
      for (int64_t j = 0; j < s.out_width; ++j, to += channels) {
        const Neighbours& column = columns[static_cast<size_t>(j)];
        const int64_t left = column.first * channels, right = column.second * channels;
        const float w11 = row.share * column.share, w10 = row.share - w11, w01 = column.share - w11,
                    w00 = 1 - row.share - w01;
        for (int64_t c = 0; c < channels; ++c)
          to[c] =
              w00 * above[left + c] + w01 * above[right + c] + w10 * below[left + c] + w11 * below[right + c];
      }
    }
  });
}

void resize_backward(const ResizeShape& s, const float* dy, float* dx) {
  const int64_t channels = s.channels, line = s.width * channels, image_size = s.height * line;
  std::fill_n(dx, s.images * image_size, 0.0f);
  if (s.images * s.out_height * s.out_width * channels == 0) return;
  const std::vector<Neighbours> rows = neighbours_of(s.height, s.out_height),
                                columns = neighbours_of(s.width, s.out_width);
  // Whole images go to threads: places of y share their neighbours.
  parallel_for(s.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* from = dy + n * s.out_height * s.out_width * channels;
      float* image = dx + n * image_size;
      for (const Neighbours& row : rows)
        for (const Neighbours& column : columns) {
          const int64_t left = column.first * channels, right = column.second * channels;
          const float w11 = row.share * column.share, w10 = row.share - w11, w01 = column.share - w11,
                      w00 = 1 - row.share - w01;
          float *above = image + row.first * line, *below = image + row.second * line;
          for (int64_t c = 0; c < channels; ++c) {
            above[left + c] += w00 * from[c];
            above[right + c] += w01 * from[c];
            below[left + c] += w10 * from[c];
            below[right + c] += w11 * from[c];
          }
          from += channels;
        }
    }
  });
}

}  // namespace fovea::kernels
