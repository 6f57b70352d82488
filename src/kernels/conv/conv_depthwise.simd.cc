// Depthwise convolution: lanes are channels. Memory is what it waits for, so places are walked in the order
// they lie, and a vector of x that several places read is loaded once for all of them.
#include "kernels/conv/conv_levels.h"
#include "kernels/vector/vector_row-inl.h"

namespace fovea::kernels {
namespace {

constexpr int64_t kBlock = 8;  // vectors of channels that pass before the next block of them
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr bool kSlides = true;  // registers enough to hold 3 x 3 of x beside as many sums
#else
constexpr bool kSlides = false;
#endif
constexpr int kMostPlaces = kSlides ? 14 : 8;  // of a tile: as many chains of sums

// kPlaces places and kLanes channels, kTaps taps a row that are neighbours; places are kStride columns apart.
template <int kPlaces, int kTaps, int kStride>
HWY_INLINE void neighbours_tile(const DepthwiseLines& all, const float* x, const float* weight,
                                const float* bias, float* y) {
  V sum[kPlaces];
#pragma GCC unroll 16
  for (int i = 0; i < kPlaces; ++i) sum[i] = hn::LoadU(d, bias);
  for (int64_t row = 0; row < all.rows; ++row, x += all.x_row, weight += all.weight_row) {
    V w[kTaps];
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) w[t] = hn::LoadU(d, weight + t * all.weight_tap);
#pragma GCC unroll 32
    for (int j = 0; j < (kPlaces - 1) * kStride + kTaps; ++j) {
      const V value = hn::LoadU(d, x + j * (kTaps == 1 ? all.x_step : all.x_tap));
#pragma GCC unroll 4
      for (int t = 0; t < kTaps; ++t) {
        const int i = (j - t) / kStride;
        if (j >= t && (j - t) % kStride == 0 && i < kPlaces) sum[i] = hn::MulAdd(value, w[t], sum[i]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kPlaces; ++i) hn::StoreU(sum[i], d, y + i * all.y_step);
}

// Any taps; `lanes` channels.
template <int kPlaces>
HWY_INLINE void any_tile(const DepthwiseLines& all, const float* x, const float* weight, const float* bias,
                         float* y, int64_t lanes) {
  V sum[kPlaces];
#pragma GCC unroll 16
  for (int i = 0; i < kPlaces; ++i) sum[i] = load(bias, lanes);
  for (int64_t row = 0; row < all.rows; ++row)
    for (int64_t t = 0; t < all.taps; ++t) {
      const float* from = x + row * all.x_row + t * all.x_tap;
      const V w = load(weight + row * all.weight_row + t * all.weight_tap, lanes);
#pragma GCC unroll 16
      for (int i = 0; i < kPlaces; ++i) sum[i] = hn::MulAdd(load(from + i * all.x_step, lanes), w, sum[i]);
    }
#pragma GCC unroll 16
  for (int i = 0; i < kPlaces; ++i) store(sum[i], y + i * all.y_step, lanes);
}

// What a tile reads through: kTaps 0 are any taps, any distance apart.
template <int kTaps, int kStride>
struct Taps {
  static constexpr int taps = kTaps, stride = kStride;
};

template <int kPlaces, class T>
HWY_NOINLINE void place_tiles(const DepthwiseLines& all, int64_t tiles, const float* first, float* to) {
  if constexpr (T::taps == 0) {
    for (int64_t line = 0; line < all.lines; ++line)
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const float* const x = first + line * all.x_line + tile * kPlaces * all.x_step;
        float* const y = to + line * all.y_line + tile * kPlaces * all.y_step;
        for_vectors(all.channels, [&](int64_t c, int64_t lanes) HWY_ATTR {
          any_tile<kPlaces>(all, x + c, all.weight + c, all.bias + c, y + c, lanes);
        });
      }
  } else {
    for (int64_t c = 0; c < all.channels; c += kBlock * kLanes)
      for (int64_t line = 0; line < all.lines; ++line) {
        // What the line below reads and no line before it.
        const int64_t below = line + 1 < all.lines ? all.x_line + (all.rows - 1) * all.x_row : 0;
        const int64_t y_below = line + 1 < all.lines ? all.y_line : 0;
        for (int64_t tile = 0; tile < tiles; ++tile)
          for (int64_t v = c; v < all.channels && v < c + kBlock * kLanes; v += kLanes) {
            // The last vector begins early enough to be whole: its first channels are computed again.
            const int64_t at = v + kLanes <= all.channels ? v : all.channels - kLanes;
            const float* const x = first + line * all.x_line + tile * kPlaces * all.x_step + at;
            float* const y = to + line * all.y_line + tile * kPlaces * all.y_step + at;
#pragma GCC unroll 16
            for (int i = 0; i < kPlaces; ++i) {
              __builtin_prefetch(x + below + i * all.x_step, 0, 2);
              if constexpr (T::stride == 2) {  // two rows and two columns
                __builtin_prefetch(x + below + i * all.x_step + all.x_tap, 0, 2);
                __builtin_prefetch(x + below - all.x_row + i * all.x_step, 0, 2);
                __builtin_prefetch(x + below - all.x_row + i * all.x_step + all.x_tap, 0, 2);
              }
              __builtin_prefetch(y + y_below + i * all.y_step, 1, 2);
            }
            neighbours_tile<kPlaces, T::taps, T::stride>(all, x, all.weight + at, all.bias + at, y);
          }
      }
  }
}

template <int kMost, class T>
HWY_INLINE void choose_place_tiles(int64_t places, const DepthwiseLines& all, int64_t tiles, const float* x,
                                   float* y) {
  if (places == kMost) return place_tiles<kMost, T>(all, tiles, x, y);
  if constexpr (kMost > 1) choose_place_tiles<kMost - 1, T>(places, all, tiles, x, y);
}

// Every line in tiles of nearly equal size.
template <class T>
void run_lines(const DepthwiseLines& all) {
  const int64_t tiles = (all.count + kMostPlaces - 1) / kMostPlaces;
  const int64_t places = all.count / tiles, larger = all.count % tiles, done = larger * (places + 1);
  if (larger > 0) choose_place_tiles<kMostPlaces, T>(places + 1, all, larger, all.x, all.y);
  choose_place_tiles<kMostPlaces, T>(places, all, tiles - larger, all.x + done * all.x_step,
                                     all.y + done * all.y_step);
}

// `lanes` channels, kRows rows of kTaps taps.
template <int kRows, int kTaps>
HWY_INLINE void sum_tile(const DepthwiseSum& block, int64_t c, int64_t lanes) {
  V sum[kRows][kTaps];
#pragma GCC unroll 4
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) sum[row][t] = hn::Zero(d);
  }
  for (int64_t line = 0; line < block.lines; ++line) {
    const float* HWY_RESTRICT x = block.x + line * block.x_line + c;
    const float* HWY_RESTRICT dy = block.dy + line * block.dy_line + c;
    int64_t i = 0;
    if constexpr (kSlides && kTaps == 3) {
      if (lanes == kLanes && block.x_step == block.x_tap && block.count >= 3) {
        // Columns 0 and 1 of the taps are there from the place before.
        V held[kRows][3];
#pragma GCC unroll 4
        for (int row = 0; row < kRows; ++row) {
          held[row][0] = hn::LoadU(d, x + row * block.x_row);
          held[row][1] = hn::LoadU(d, x + row * block.x_row + block.x_tap);
        }
        for (; i + 3 <= block.count; i += 3) {
#pragma GCC unroll 4
          for (int turn = 0; turn < 3; ++turn, x += block.x_step, dy += block.dy_step) {
            const V right = hn::LoadU(d, dy);
            __builtin_prefetch(dy + kLanes, 0, 2);
            __builtin_prefetch(x + (kRows - 1) * block.x_row + kLanes, 0, 2);
#pragma GCC unroll 4
            for (int row = 0; row < kRows; ++row) {
              held[row][(turn + 2) % 3] = hn::LoadU(d, x + row * block.x_row + 2 * block.x_tap);
#pragma GCC unroll 4
              for (int t = 0; t < 3; ++t)
                sum[row][t] = hn::MulAdd(held[row][(turn + t) % 3], right, sum[row][t]);
            }
          }
        }
      }
    }
    for (; i < block.count; ++i, x += block.x_step, dy += block.dy_step) {
      const V right = load(dy, lanes);
      __builtin_prefetch(dy + kLanes, 0, 2);
      __builtin_prefetch(x + (kRows - 1) * block.x_row + kLanes, 0, 2);
#pragma GCC unroll 4
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
        for (int t = 0; t < kTaps; ++t)
          sum[row][t] = hn::MulAdd(load(x + row * block.x_row + t * block.x_tap, lanes), right, sum[row][t]);
      }
    }
  }
#pragma GCC unroll 4
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) {
      float* const to = block.sum + row * block.sum_row + t * block.channels + c;
      store(hn::Add(load(to, lanes), sum[row][t]), to, lanes);
    }
  }
}

// Where registers are few, or places lie so far apart that they share cache sets.
HWY_INLINE bool in_pairs(const DepthwiseSum& block) {
  return block.x_step == block.x_tap && (!kSlides || block.channels >= 256);
}

// One row of three taps and two vectors of channels: columns 0 and 1 of the taps are there from the place
// before.
HWY_INLINE void sum_pair(const DepthwiseSum& block, int64_t c) {
  V sum[3][2];
#pragma GCC unroll 4
  for (int t = 0; t < 3; ++t) sum[t][0] = sum[t][1] = hn::Zero(d);
  for (int64_t line = 0; line < block.lines; ++line) {
    const float* HWY_RESTRICT x = block.x + line * block.x_line + c;
    const float* HWY_RESTRICT dy = block.dy + line * block.dy_line + c;
    V held[3][2];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      held[0][v] = hn::LoadU(d, x + v * kLanes);
      held[1][v] = hn::LoadU(d, x + block.x_tap + v * kLanes);
    }
    int64_t i = 0;
    for (; i + 3 <= block.count; i += 3) {
#pragma GCC unroll 4
      for (int turn = 0; turn < 3; ++turn, x += block.x_step, dy += block.dy_step) {
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          const V right = hn::LoadU(d, dy + v * kLanes);
          held[(turn + 2) % 3][v] = hn::LoadU(d, x + 2 * block.x_tap + v * kLanes);
#pragma GCC unroll 4
          for (int t = 0; t < 3; ++t) sum[t][v] = hn::MulAdd(held[(turn + t) % 3][v], right, sum[t][v]);
        }
      }
    }
    for (; i < block.count; ++i, x += block.x_step, dy += block.dy_step) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const V right = hn::LoadU(d, dy + v * kLanes);
#pragma GCC unroll 4
        for (int t = 0; t < 3; ++t)
          sum[t][v] = hn::MulAdd(hn::LoadU(d, x + t * block.x_tap + v * kLanes), right, sum[t][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < 3; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* const to = block.sum + t * block.channels + c + v * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, to), sum[t][v]), d, to);
    }
  }
}

template <int kRows, int kTaps>
HWY_NOINLINE void sum_channels(const DepthwiseSum& block) {
  int64_t c = 0;
  if constexpr (kRows == 1 && kTaps == 3) {
    if (in_pairs(block) && block.count >= 2)
      for (; c + 2 * kLanes <= block.channels; c += 2 * kLanes) sum_pair(block, c);
  }
  for (; c + kLanes <= block.channels; c += kLanes) sum_tile<kRows, kTaps>(block, c, kLanes);
  if (c < block.channels) sum_tile<kRows, kTaps>(block, c, block.channels - c);
}

template <int kRows>
void sum_rows(const DepthwiseSum& block) {
  DepthwiseSum part = block;
  for (int64_t t = 0; t < block.taps; t += part.taps) {
    part.taps = block.taps - t < 3 ? block.taps - t : 3;
    part.x = block.x + t * block.x_tap;
    part.sum = block.sum + t * block.channels;
    if (part.taps == 3)
      sum_channels<kRows, 3>(part);
    else if (part.taps == 2)
      sum_channels<kRows, 2>(part);
    else
      sum_channels<kRows, 1>(part);
  }
}

}  // namespace

namespace FOVEA_LEVEL {

void depthwise_lines(const DepthwiseLines& all);
void depthwise_lines(const DepthwiseLines& all) {
  const bool whole = all.channels >= kLanes;
  if (whole && all.taps == 3 && all.x_step == all.x_tap) return run_lines<Taps<3, 1>>(all);
  if (whole && all.taps == 3 && all.x_step == 2 * all.x_tap) return run_lines<Taps<3, 2>>(all);
  if (whole && all.taps == 2 && all.x_step == all.x_tap) return run_lines<Taps<2, 1>>(all);
  if (whole && all.taps == 1) return run_lines<Taps<1, 1>>(all);
  return run_lines<Taps<0, 0>>(all);
}

void depthwise_sum(const DepthwiseSum& block);
void depthwise_sum(const DepthwiseSum& block) {
  DepthwiseSum part = block;
  for (int64_t row = 0; row < block.rows; row += part.rows) {
    const int64_t most = in_pairs(block) ? 1 : 3;
    part.rows = block.rows - row < most ? block.rows - row : most;
    part.x = block.x + row * block.x_row;
    part.sum = block.sum + row * block.sum_row;
    if (part.rows == 3)
      sum_rows<3>(part);
    else if (part.rows == 2)
      sum_rows<2>(part);
    else
      sum_rows<1>(part);
  }
}

}  // namespace FOVEA_LEVEL

}  // namespace fovea::kernels
