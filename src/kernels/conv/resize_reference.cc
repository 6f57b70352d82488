#include <algorithm>
#include <cmath>

#include "kernels/conv/resize.h"

namespace fovea::kernels::scalar {
namespace {

// How much of pixel `i` of x is in place `o` of y, along one axis.
float share(int64_t size, int64_t out_size, int64_t o, int64_t i) {
  const float scale = static_cast<float>(size) / static_cast<float>(out_size);
  const float place =
      std::clamp((static_cast<float>(o) + 0.5f) * scale - 0.5f, 0.0f, static_cast<float>(size - 1));
  return std::max(0.0f, 1 - std::abs(place - static_cast<float>(i)));
}

// Calls visit(place in x, place in y, share) for every pair that has one.
template <class Visit>
void for_each_share(const ResizeShape& s, Visit visit) {
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t oh = 0; oh < s.out_height; ++oh)
      for (int64_t ow = 0; ow < s.out_width; ++ow)
        for (int64_t h = 0; h < s.height; ++h)
          for (int64_t w = 0; w < s.width; ++w) {
            const float part = share(s.height, s.out_height, oh, h) * share(s.width, s.out_width, ow, w);
            if (part == 0) continue;
            for (int64_t c = 0; c < s.channels; ++c)
              visit(((n * s.height + h) * s.width + w) * s.channels + c,
                    ((n * s.out_height + oh) * s.out_width + ow) * s.channels + c, part);
          }
}

}  // namespace

void resize_forward(const ResizeShape& s, const float* x, float* y) {
  std::fill_n(y, s.images * s.out_height * s.out_width * s.channels, 0.0f);
  for_each_share(s, [&](int64_t from, int64_t to, float part) { y[to] += part * x[from]; });
}

void resize_backward(const ResizeShape& s, const float* dy, float* dx) {
  std::fill_n(dx, s.images * s.height * s.width * s.channels, 0.0f);
  for_each_share(s, [&](int64_t from, int64_t to, float part) { dx[from] += part * dy[to]; });
}

}  // namespace fovea::kernels::scalar
