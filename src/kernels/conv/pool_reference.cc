#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/conv/pool.h"

namespace fovea::kernels::scalar {
namespace {

// Calls visit(place in x, place in y, h * width + w) for every element of every window, in reading order.
template <class Visit>
void for_each_element(const PoolShape& s, Visit visit) {
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t oh = 0; oh < s.out_height(); ++oh)
      for (int64_t ow = 0; ow < s.out_width(); ++ow)
        for (int64_t kh = 0; kh < s.kernel_h; ++kh)
          for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
            const int64_t h = oh * s.stride_h - s.top + kh, w = ow * s.stride_w - s.left + kw;
            if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
            for (int64_t c = 0; c < s.channels; ++c)
              visit(((n * s.height + h) * s.width + w) * s.channels + c,
                    ((n * s.out_height() + oh) * s.out_width() + ow) * s.channels + c, h * s.width + w);
          }
}

int64_t inputs(const PoolShape& s) {
  return s.images * s.height * s.width * s.channels;
}
int64_t outputs(const PoolShape& s) {
  return s.images * s.out_height() * s.out_width() * s.channels;
}

// What each element of y is divided by.
std::vector<float> divisors(const PoolShape& s, bool count_padding) {
  const auto whole = static_cast<float>(count_padding ? s.kernel_h * s.kernel_w : 0);
  std::vector<float> counts(static_cast<size_t>(outputs(s)), whole);
  if (!count_padding) for_each_element(s, [&](int64_t, int64_t y, int64_t) { ++counts[size_t(y)]; });
  return counts;
}

}  // namespace

void max_pool_forward(const PoolShape& s, const float* x, float* y, int32_t* place) {
  std::fill_n(place, outputs(s), -1);
  for_each_element(s, [&](int64_t from, int64_t to, int64_t here) {
    const bool better = place[to] < 0 || x[from] > y[to] || (std::isnan(x[from]) && !std::isnan(y[to]));
    if (!better) return;
    y[to] = x[from];
    place[to] = static_cast<int32_t>(here);
  });
}

void max_pool_backward(const PoolShape& s, const float* dy, const int32_t* place, float* dx) {
  std::fill_n(dx, inputs(s), 0.0f);
  for_each_element(s, [&](int64_t from, int64_t to, int64_t here) {
    if (place[to] == here) dx[from] += dy[to];
  });
}

void avg_pool_forward(const PoolShape& s, bool count_padding, const float* x, float* y) {
  const std::vector<float> divisor = divisors(s, count_padding);
  std::fill_n(y, outputs(s), 0.0f);
  for_each_element(s, [&](int64_t from, int64_t to, int64_t) { y[to] += x[from] / divisor[size_t(to)]; });
}

void avg_pool_backward(const PoolShape& s, bool count_padding, const float* dy, float* dx) {
  const std::vector<float> divisor = divisors(s, count_padding);
  std::fill_n(dx, inputs(s), 0.0f);
  for_each_element(s, [&](int64_t from, int64_t to, int64_t) { dx[from] += dy[to] / divisor[size_t(to)]; });
}

}  // namespace fovea::kernels::scalar
