// The parts of a convolution that are compiled for every instruction-set level: loops over a line of places
// that all see the same taps. conv_dense.cc and its neighbours cut a convolution into such lines.
#pragma once

#include <cstdint>

#include "kernels/conv/conv.h"

namespace fovea::kernels {

// y[i][f] = bias[f] + sum over taps of x[place + tap] weight[tap][f], for `lines` lines of `count` places.
// The taps are floats of x: `rows` rows of `runs` runs of `length` floats side by side.
struct ConvLines {
  int64_t lines = 0, x_line = 0, y_line = 0;  // how many, and from one to the next in x and in y
  int64_t count = 0, x_step = 0, y_step = 0;
  int64_t rows = 0, x_row = 0, weight_row = 0;
  int64_t runs = 0, x_run = 0, weight_run = 0;
  int64_t length = 0;
  const float* x = nullptr;
  const float* weight = nullptr;  // [taps][vectors * lanes]
  const float* bias = nullptr;    // [vectors * lanes]
  int vectors = 1;                // 1 to 4
  int64_t filters = 0;            // those that exist, more than (vectors - 1) * lanes
  float* y = nullptr;
};

// sum[t][f] += x[place + t] dy[place][f] over places, for t in [0, taps). Places are a block: images of rows
// of columns.
struct ConvSum {
  int64_t taps = 0;
  const float* x = nullptr;
  const float* dy = nullptr;
  int64_t images = 0, x_image = 0, dy_image = 0;
  int64_t rows = 0, x_row = 0, dy_row = 0;
  int64_t columns = 0, x_column = 0, dy_column = 0;
  int vectors = 1;
  int64_t filters = 0;
  float* sum = nullptr;  // [taps][stride], vectors * lanes of each written
  int64_t stride = 0;
};

// One width of vectors.
struct ConvDense {
  int64_t lanes;
  int64_t line_vectors, sum_vectors;  // the most that a panel had better have
  void (*lines)(const ConvLines& lines);
  void (*sum)(const ConvSum& sum);
};

// y[i][c] = bias[c] + sum over taps of x[place + tap][c] weight[tap][c]: every channel for itself.
struct DepthwiseLines {
  int64_t lines = 0, x_line = 0, y_line = 0;
  int64_t count = 0, x_step = 0, y_step = 0;
  int64_t rows = 0, x_row = 0, weight_row = 0;
  int64_t taps = 0, x_tap = 0, weight_tap = 0;  // of a row
  int64_t channels = 0;
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;  // [channels]
  float* y = nullptr;
};

// sum[row][tap][c] += x[place + tap of row][c] dy[place][c] over `lines` lines of `count` places.
struct DepthwiseSum {
  int64_t rows = 0, x_row = 0, sum_row = 0;
  int64_t taps = 0, x_tap = 0;  // of a row; the sums of a tap are `channels` floats
  int64_t lines = 0, x_line = 0, dy_line = 0;
  int64_t count = 0, x_step = 0, dy_step = 0;
  int64_t channels = 0;
  const float* x = nullptr;
  const float* dy = nullptr;
  float* sum = nullptr;
};

// y[i][j][f] = bias[f] + sum over channels and taps of x[channel][i + row][j + tap]
// weight[channel][row][tap][f] for rows i and columns j of places and few filters f. Up to a vector behind
// the last column is read.
constexpr int64_t kConvPlanesFilters = 3;  // at most
struct ConvPlanes {
  int64_t rows = 0, x_row = 0, y_row = 0;
  int64_t columns = 0;
  int64_t channels = 0, x_plane = 0;
  int64_t tap_rows = 0, x_tap_row = 0;
  int64_t taps = 0, x_tap = 0;
  int64_t filters = 1;
  const float* x = nullptr;
  const float* weight = nullptr;
  float bias[kConvPlanesFilters] = {};
  float* y = nullptr;
};
constexpr int64_t kMostLanes = 16;  // of a vector of any level

struct ConvKernels {
  ConvDense wide;    // whole vectors
  ConvDense narrow;  // 8 lanes where a vector has 16, for few filters; else as wide
  void (*depthwise_lines)(const DepthwiseLines& lines);
  void (*depthwise_sum)(const DepthwiseSum& sum);
  void (*planes)(const ConvPlanes& planes);
};

}  // namespace fovea::kernels
