// Convolution with many channels: register tiles of places by vectors of filters.
//
// A tile keeps its sums in registers over all taps: for each tap the vectors of weights are loaded once and
// meet one float of every place. With AVX-512 24 sums hide the latency of a multiply-add (4 cycles, one or
// two a cycle) many times over, with AVX2 12.
#include "kernels/conv/conv_levels.h"
#include "kernels/vector/vector_tail-inl.h"

namespace fovea::kernels {
namespace {

#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kSums = 24;  // of 32 registers
#else
constexpr int kSums = 12;  // of 16
#endif

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* p, int64_t lanes) {
  return lanes == static_cast<int64_t>(hn::MaxLanes(d)) ? hn::LoadU(d, p) : load_first(d, p, lanes);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, float* p, int64_t lanes) {
  if (lanes == static_cast<int64_t>(hn::MaxLanes(d)))
    hn::StoreU(v, d, p);
  else
    store_first(v, d, p, lanes);
}

// Tiles of kPlaces places, the first `tiles` of every line.
template <class D, int kPlaces, int kVectors>
HWY_NOINLINE void place_tiles(const ConvLines& all, int64_t tiles, const float* first, float* to) {
  const D d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const int64_t step = all.x_step, length = all.length;
  const int64_t last = all.filters - (kVectors - 1) * kLanes;
  for (int64_t line = 0; line < all.lines; ++line) {
    const float* x = first + line * all.x_line;
    float* y = to + line * all.y_line;
    for (int64_t tile = 0; tile < tiles; ++tile, x += kPlaces * step, y += kPlaces * all.y_step) {
      // y is often not in a cache: it is requested before the sums are made.
#pragma GCC unroll 32
      for (int i = 0; i < kPlaces; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; v += kLanes < 16 ? 2 : 1)
          __builtin_prefetch(y + i * all.y_step + v * kLanes, 1, 3);
      }
      hn::Vec<D> sum[kPlaces][kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const hn::Vec<D> bias = hn::LoadU(d, all.bias + v * kLanes);
#pragma GCC unroll 32
        for (int i = 0; i < kPlaces; ++i) sum[i][v] = bias;
      }
      for (int64_t row = 0; row < all.rows; ++row)
        for (int64_t run = 0; run < all.runs; ++run) {
          const float* HWY_RESTRICT from = x + row * all.x_row + run * all.x_run;
          const float* HWY_RESTRICT weight = all.weight + row * all.weight_row + run * all.weight_run;
          for (int64_t p = 0; p < length; ++p) {
            hn::Vec<D> right[kVectors];
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, weight + v * kLanes);
            weight += kVectors * kLanes;
#pragma GCC unroll 32
            for (int i = 0; i < kPlaces; ++i) {
              const hn::Vec<D> left = hn::Set(d, from[i * step + p]);
#pragma GCC unroll 4
              for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
            }
          }
        }
#pragma GCC unroll 32
      for (int i = 0; i < kPlaces; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          store(d, sum[i][v], y + i * all.y_step + v * kLanes, v + 1 < kVectors ? kLanes : last);
      }
    }
  }
}

// The same for one vector of filters and kTaps taps a row that are neighbours, as the places are: a float of x
// meets the weights of all of them at once. One short vector alone would wait for its loads; with 16 lanes
// loads keep up.
template <class D, int kPlaces, int kTaps>
HWY_NOINLINE void neighbour_tiles(const ConvLines& all, int64_t tiles, const float* first, float* to) {
  const D d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const int64_t step = all.x_step;
  for (int64_t line = 0; line < all.lines; ++line) {
    const float* x = first + line * all.x_line;
    float* y = to + line * all.y_line;
    for (int64_t tile = 0; tile < tiles; ++tile, x += kPlaces * step, y += kPlaces * all.y_step) {
      hn::Vec<D> sum[kPlaces];
      const hn::Vec<D> bias = hn::LoadU(d, all.bias);
#pragma GCC unroll 32
      for (int i = 0; i < kPlaces; ++i) sum[i] = bias;
      for (int64_t row = 0; row < all.rows; ++row) {
        const float* HWY_RESTRICT from = x + row * all.x_row;
        const float* HWY_RESTRICT weight = all.weight + row * all.weight_row;
        for (int64_t p = 0; p < step; ++p, weight += kLanes) {
          hn::Vec<D> right[kTaps];
#pragma GCC unroll 4
          for (int t = 0; t < kTaps; ++t) right[t] = hn::LoadU(d, weight + t * step * kLanes);
#pragma GCC unroll 32
          for (int j = 0; j < kPlaces + kTaps - 1; ++j) {
            const hn::Vec<D> left = hn::Set(d, from[j * step + p]);
#pragma GCC unroll 4
            for (int t = 0; t < kTaps; ++t)
              if (j >= t && j - t < kPlaces) sum[j - t] = hn::MulAdd(left, right[t], sum[j - t]);
          }
        }
      }
#pragma GCC unroll 32
      for (int i = 0; i < kPlaces; ++i) store(d, sum[i], y + i * all.y_step, all.filters);
    }
  }
}

template <class D, int kMost, int kTaps>
HWY_INLINE void choose_neighbour_tiles(int64_t places, const ConvLines& all, int64_t tiles, const float* x,
                                       float* y) {
  if (places == kMost) return neighbour_tiles<D, kMost, kTaps>(all, tiles, x, y);
  if constexpr (kMost > 1) choose_neighbour_tiles<D, kMost - 1, kTaps>(places, all, tiles, x, y);
}

template <class D, int kMost, int kVectors>
HWY_INLINE void choose_place_tiles(int64_t places, const ConvLines& all, int64_t tiles, const float* x,
                                   float* y) {
  if (places == kMost) return place_tiles<D, kMost, kVectors>(all, tiles, x, y);
  if constexpr (kMost > 1) choose_place_tiles<D, kMost - 1, kVectors>(places, all, tiles, x, y);
}

// Every line in tiles of nearly equal size.
template <class D, int kVectors>
void lines_of(const ConvLines& all) {
  constexpr int kMost = kVectors == 1 ? (kSums > 12 ? 16 : 12) : kSums / kVectors;
  const int64_t tiles = (all.count + kMost - 1) / kMost;
  const int64_t places = all.count / tiles, larger = all.count % tiles, done = larger * (places + 1);
  const float* const x = all.x + done * all.x_step;
  float* const y = all.y + done * all.y_step;
  if constexpr (kVectors == 1 && hn::MaxLanes(D()) <= 8) {
    if (all.runs == 1 && all.length == 3 * all.x_step) {
      if (larger > 0) choose_neighbour_tiles<D, kMost, 3>(places + 1, all, larger, all.x, all.y);
      return choose_neighbour_tiles<D, kMost, 3>(places, all, tiles - larger, x, y);
    }
    if (all.runs == 1 && all.length == 2 * all.x_step) {
      if (larger > 0) choose_neighbour_tiles<D, kMost, 2>(places + 1, all, larger, all.x, all.y);
      return choose_neighbour_tiles<D, kMost, 2>(places, all, tiles - larger, x, y);
    }
  }
  if (larger > 0) choose_place_tiles<D, kMost, kVectors>(places + 1, all, larger, all.x, all.y);
  choose_place_tiles<D, kMost, kVectors>(places, all, tiles - larger, x, y);
}

template <class D>
void run_lines(const ConvLines& all) {
  switch (all.vectors) {
    case 1:
      return lines_of<D, 1>(all);
    case 2:
      return lines_of<D, 2>(all);
    case 3:
      return lines_of<D, 3>(all);
    default:
      return lines_of<D, 4>(all);
  }
}

// kTaps taps, summed over the block of places.
template <class D, int kTaps, int kVectors, bool kWhole>
HWY_NOINLINE void sum_tile(const ConvSum& block, int64_t tap) {
  const D d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const int64_t last = kWhole ? kLanes : block.filters - (kVectors - 1) * kLanes;
  hn::Vec<D> sum[kTaps][kVectors];
#pragma GCC unroll 32
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[t][v] = hn::Zero(d);
  }
  for (int64_t image = 0; image < block.images; ++image)
    for (int64_t row = 0; row < block.rows; ++row) {
      const float* HWY_RESTRICT x = block.x + image * block.x_image + row * block.x_row + tap;
      const float* HWY_RESTRICT dy = block.dy + image * block.dy_image + row * block.dy_row;
      const int64_t x_column = block.x_column, dy_column = block.dy_column;
      for (int64_t column = 0; column < block.columns; ++column, x += x_column, dy += dy_column) {
        hn::Vec<D> right[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          right[v] = v + 1 < kVectors || kWhole ? hn::LoadU(d, dy + v * kLanes)
                                                : load_first(d, dy + v * kLanes, last);
#pragma GCC unroll 32
        for (int t = 0; t < kTaps; ++t) {
          const hn::Vec<D> left = hn::Set(d, x[t]);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sum[t][v] = hn::MulAdd(left, right[v], sum[t][v]);
        }
      }
    }
  float* to = block.sum + tap * block.stride;
#pragma GCC unroll 32
  for (int t = 0; t < kTaps; ++t, to += block.stride) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(hn::Add(hn::LoadU(d, to + v * kLanes), sum[t][v]), d, to + v * kLanes);
  }
}

template <class D, int kMost, int kVectors, bool kWhole>
HWY_INLINE void choose_sum_tile(int64_t taps, const ConvSum& block, int64_t tap) {
  if (taps == kMost) return sum_tile<D, kMost, kVectors, kWhole>(block, tap);
  if constexpr (kMost > 1) choose_sum_tile<D, kMost - 1, kVectors, kWhole>(taps, block, tap);
}

template <class D, int kVectors>
void sum_of(const ConvSum& block) {
  constexpr int kMost = kVectors == 1 ? (kSums > 12 ? 16 : 12) : kSums / kVectors;
  const int64_t tiles = (block.taps + kMost - 1) / kMost;
  const bool whole = block.filters == kVectors * static_cast<int64_t>(hn::MaxLanes(D()));
  int64_t tap = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t taps = block.taps / tiles + (tile < block.taps % tiles ? 1 : 0);
    if (whole)
      choose_sum_tile<D, kMost, kVectors, true>(taps, block, tap);
    else
      choose_sum_tile<D, kMost, kVectors, false>(taps, block, tap);
    tap += taps;
  }
}

// One or two filters: lanes are taps. Four chains hide the latency of the additions.
template <class D, int kFilters>
HWY_NOINLINE void few_filters_sum(const ConvSum& block) {
  const D d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int kChains = 4;
  for (int64_t tap = 0; tap < block.taps; tap += kLanes) {
    const int64_t lanes = block.taps - tap < kLanes ? block.taps - tap : kLanes;
    hn::Vec<D> sum[kChains][kFilters];
#pragma GCC unroll 4
    for (int i = 0; i < kChains; ++i) {
#pragma GCC unroll 2
      for (int f = 0; f < kFilters; ++f) sum[i][f] = hn::Zero(d);
    }
    for (int64_t image = 0; image < block.images; ++image)
      for (int64_t row = 0; row < block.rows; ++row) {
        const float* HWY_RESTRICT x = block.x + image * block.x_image + row * block.x_row + tap;
        const float* HWY_RESTRICT dy = block.dy + image * block.dy_image + row * block.dy_row;
        const auto add = [&](int64_t column, hn::Vec<D>* to) HWY_ATTR {
          const hn::Vec<D> left = load(d, x + column * block.x_column, lanes);
#pragma GCC unroll 2
          for (int f = 0; f < kFilters; ++f)
            to[f] = hn::MulAdd(left, hn::Set(d, dy[column * block.dy_column + f]), to[f]);
        };
        int64_t column = 0;
        for (; column + kChains <= block.columns; column += kChains) {
#pragma GCC unroll 4
          for (int i = 0; i < kChains; ++i) add(column + i, sum[i]);
        }
        for (; column < block.columns; ++column) add(column, sum[0]);
      }
    HWY_ALIGN float total[kLanes];
    for (int f = 0; f < kFilters; ++f) {
      hn::Store(hn::Add(hn::Add(sum[0][f], sum[1][f]), hn::Add(sum[2][f], sum[3][f])), d, total);
      for (int64_t t = 0; t < lanes; ++t) block.sum[(tap + t) * block.stride + f] += total[t];
    }
  }
}

template <class D>
void run_sum(const ConvSum& block) {
  if (block.vectors == 1 && block.filters == 1) return few_filters_sum<D, 1>(block);
  if (block.vectors == 1 && block.filters == 2) return few_filters_sum<D, 2>(block);
  switch (block.vectors) {
    case 1:
      return sum_of<D, 1>(block);
    case 2:
      return sum_of<D, 2>(block);
    case 3:
      return sum_of<D, 3>(block);
    default:
      return sum_of<D, 4>(block);
  }
}

template <class D>
constexpr ConvDense dense() {
  return {static_cast<int64_t>(hn::MaxLanes(D())), kSums > 12 ? 4 : 3, 2, run_lines<D>, run_sum<D>};
}

}  // namespace

namespace FOVEA_LEVEL {
void depthwise_lines(const DepthwiseLines& all);
void depthwise_sum(const DepthwiseSum& block);
void conv_planes(const ConvPlanes& all);
extern const ConvKernels conv_table;
const ConvKernels conv_table{.wide = dense<hn::ScalableTag<float>>(),
                             .narrow = dense<hn::CappedTag<float, 8>>(),
                             .depthwise_lines = depthwise_lines,
                             .depthwise_sum = depthwise_sum,
                             .planes = conv_planes};
}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
