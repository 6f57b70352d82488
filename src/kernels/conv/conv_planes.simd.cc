// Convolution to one, two or three channels: lanes are places side by side, each channel of x a plane of its
// own with zeros around it.
#include "kernels/conv/conv_levels.h"
#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

template <int kFilters>
HWY_INLINE void store_side_by_side(const V* sum, float* to) {
  if constexpr (kFilters == 2)
    hn::StoreInterleaved2(sum[0], sum[1], d, to);
  else
    hn::StoreInterleaved3(sum[0], sum[1], sum[2], d, to);
}

// kRows rows of places by one vector of columns.
template <int kRows, int kFilters>
HWY_INLINE void tile(const ConvPlanes& all, const float* x, float* y, int64_t lanes) {
  V sum[kRows][kFilters];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int f = 0; f < kFilters; ++f) sum[i][f] = hn::Set(d, all.bias[f]);
  }
  const float* HWY_RESTRICT weight = all.weight;
  for (int64_t c = 0; c < all.channels; ++c)
    for (int64_t row = 0; row < all.tap_rows; ++row)
      for (int64_t t = 0; t < all.taps; ++t, weight += kFilters) {
        const float* HWY_RESTRICT from = x + c * all.x_plane + row * all.x_tap_row + t * all.x_tap;
        V w[kFilters];
#pragma GCC unroll 4
        for (int f = 0; f < kFilters; ++f) w[f] = hn::Set(d, weight[f]);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          const V value = hn::LoadU(d, from + i * all.x_row);
#pragma GCC unroll 4
          for (int f = 0; f < kFilters; ++f) sum[i][f] = hn::MulAdd(value, w[f], sum[i][f]);
        }
      }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    float* const to = y + i * all.y_row;
    if constexpr (kFilters == 1) {
      store(sum[i][0], to, lanes);
    } else if (lanes == kLanes) {
      store_side_by_side<kFilters>(sum[i], to);
    } else {
      HWY_ALIGN float all_lanes[kFilters * kLanes];
      store_side_by_side<kFilters>(sum[i], all_lanes);
      for (int64_t j = 0; j < kFilters * lanes; ++j) to[j] = all_lanes[j];
    }
  }
}

template <int kMost, int kFilters>
HWY_INLINE void choose_tile(int64_t rows, const ConvPlanes& all, const float* x, float* y, int64_t lanes) {
  if (rows == kMost) return tile<kMost, kFilters>(all, x, y, lanes);
  if constexpr (kMost > 1) choose_tile<kMost - 1, kFilters>(rows, all, x, y, lanes);
}

template <int kFilters>
HWY_NOINLINE void run(const ConvPlanes& all) {
  constexpr int kMost = kFilters == 3 ? 3 : 8 / kFilters;  // as many chains of sums as hide their latency
  for (int64_t row = 0; row < all.rows; row += kMost) {
    const int64_t rows = all.rows - row < kMost ? all.rows - row : kMost;
    for_vectors(all.columns, [&](int64_t column, int64_t lanes) HWY_ATTR {
      choose_tile<kMost, kFilters>(rows, all, all.x + row * all.x_row + column,
                                   all.y + row * all.y_row + column * kFilters, lanes);
    });
  }
}

}  // namespace

namespace FOVEA_LEVEL {
void conv_planes(const ConvPlanes& all);
void conv_planes(const ConvPlanes& all) {
  if (all.filters == 1)
    run<1>(all);
  else if (all.filters == 2)
    run<2>(all);
  else
    run<3>(all);
}
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
