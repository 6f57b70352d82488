#include "kernels/conv/pool.h"

#include <algorithm>

#include "base/parallel.h"

namespace fovea::kernels {
namespace {

// The part of a window that lies in the image.
struct Window {
  int64_t row_begin, row_end, column_begin, column_end;
  int64_t places() const { return (row_end - row_begin) * (column_end - column_begin); }
};

Window window_at(const PoolShape& s, int64_t out_row, int64_t out_column) {
  const int64_t row = out_row * s.stride_h - s.top, column = out_column * s.stride_w - s.left;
  return {std::max<int64_t>(0, row), std::min(s.height, row + s.kernel_h), std::max<int64_t>(0, column),
          std::min(s.width, column + s.kernel_w)};
}

// Calls body(window, x's first element of the image, y's first element of the place) for every place of y.
// Rows of y go to threads, for the gradient whole images: their windows may overlap.
template <class Body>
void for_each_window(const PoolShape& s, bool whole_images, Body body) {
  const int64_t out_h = s.out_height(), out_w = s.out_width();
  if (out_h == 0) return;
  const int64_t rows = whole_images ? out_h : 1;
  const int64_t work = std::max<int64_t>(1, rows * out_w * s.kernel_h * s.kernel_w * s.channels);
  const int64_t grain = std::max<int64_t>(1, 32768 / work) * rows;
  parallel_for(s.images * out_h, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t c = 0; c < out_w; ++c)
        body(window_at(s, r % out_h, c), r / out_h * s.height * s.width * s.channels,
             (r * out_w + c) * s.channels);
  });
}

void fill_zeros(const PoolShape& s, float* x) {
  parallel_for(s.images * s.height * s.width * s.channels, 1 << 16,
               [&](int64_t begin, int64_t end) { std::fill(x + begin, x + end, 0.0f); });
}

float share_of(const PoolShape& s, bool count_padding, const Window& window) {
  return 1 / static_cast<float>(count_padding ? s.kernel_h * s.kernel_w : window.places());
}

}  // namespace

void max_pool_forward(const PoolShape& s, const float* x, float* y, int32_t* place) {
  const int64_t channels = s.channels;
  for_each_window(s, false, [=](const Window& window, int64_t image, int64_t out) {
    float* best = y + out;
    int32_t* best_place = place + out;
    bool first = true;
    for (int64_t h = window.row_begin; h < window.row_end; ++h)
      for (int64_t w = window.column_begin; w < window.column_end; ++w) {
        const float* from = x + image + (h * s.width + w) * channels;
        const auto here = static_cast<int32_t>(h * s.width + w);
        if (first) {
          for (int64_t c = 0; c < channels; ++c) best[c] = from[c], best_place[c] = here;
          first = false;
          continue;
        }
        for (int64_t c = 0; c < channels; ++c) {
          // Not <=: true for a NaN met by a number, false for anything met by a NaN.
          const bool larger = !(from[c] <= best[c]) & (best[c] == best[c]);
          best[c] = larger ? from[c] : best[c];
          best_place[c] = larger ? here : best_place[c];
        }
      }
  });
}

void max_pool_backward(const PoolShape& s, const float* dy, const int32_t* place, float* dx) {
  fill_zeros(s, dx);
  for_each_window(s, true, [=](const Window&, int64_t image, int64_t out) {
    for (int64_t c = 0; c < s.channels; ++c) dx[image + place[out + c] * s.channels + c] += dy[out + c];
  });
}

void avg_pool_forward(const PoolShape& s, bool count_padding, const float* x, float* y) {
  const int64_t channels = s.channels;
  for_each_window(s, false, [=](const Window& window, int64_t image, int64_t out) {
    float* mean = y + out;
    std::fill(mean, mean + channels, 0.0f);
    for (int64_t h = window.row_begin; h < window.row_end; ++h)
      for (int64_t w = window.column_begin; w < window.column_end; ++w) {
        const float* from = x + image + (h * s.width + w) * channels;
        for (int64_t c = 0; c < channels; ++c) mean[c] += from[c];
      }
    const float share = share_of(s, count_padding, window);
    for (int64_t c = 0; c < channels; ++c) mean[c] *= share;
  });
}

void avg_pool_backward(const PoolShape& s, bool count_padding, const float* dy, float* dx) {
  const int64_t channels = s.channels;
  fill_zeros(s, dx);
  for_each_window(s, true, [=](const Window& window, int64_t image, int64_t out) {
    const float* from = dy + out;
    const float share = share_of(s, count_padding, window);
    for (int64_t h = window.row_begin; h < window.row_end; ++h)
      for (int64_t w = window.column_begin; w < window.column_end; ++w) {
        float* to = dx + image + (h * s.width + w) * channels;
        for (int64_t c = 0; c < channels; ++c) to[c] += share * from[c];
      }
  });
}

}  // namespace fovea::kernels
