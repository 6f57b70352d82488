// Products with weights of eight bits: y = x W^T + bias, W of int8 with one scale for each of its rows.
//
// Rows of x are quantised as they come, each by its own scale. CPUs with VNNI sum the products of four bytes
// in one instruction: there x has eight bits, which reach from a row's least value to its largest, 0 among them
// (equal steps to both sides would waste some of them on rows that are not symmetric). Elsewhere pairs of int16 are
// the fastest exact sum (the one of bytes saturates), and x has twelve bits for nothing. Sums are exact integers below 2^31 either way:
// one way's depend on no order, no batch, no thread, no level.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

// Rows of weights as integers: w[i][p] is about q[i][p] * scales[i], |q| <= 127. A scale has 17 significant
// bits, so that q * scale is an exact float, and quantising those floats again gives the same q and scale.
// False when a weight is not finite.
bool quantize_int8(int64_t rows, int64_t columns, const float* weights, int8_t* q, float* scales);

struct Int8Product {
  int64_t m = 0, n = 0, k = 0;
  int64_t column_begin = 0, column_end = 0;  // multiples of panel_columns; the end may also be n
  const int32_t* a = nullptr;                // [m, groups(k)], from quantize_rows
  const float* a_scales = nullptr;           // [m]
  const int32_t* a_zeros = nullptr;          // [m]: what stands for 0; of bytes alone
  const int8_t* packed = nullptr;
  const float* scales = nullptr;  // [n]
  const float* bias = nullptr;    // [n] or null
  float* c = nullptr;             // [m, n]: c = sum * (a_scale * scale) + bias
  int64_t ldc = 0;
};

// One way to make the products, on the calling thread.
struct Int8Kernels {
  int64_t panel_columns;  // columns of W^T that are packed side by side
  // Activations that lie in one int32 and are multiplied together: 2 of int16, or 4 of uint8, which stand for
  // themselves less their row's zero.
  int64_t together;
  // q: [n, k] -> packed_int8_size() bytes.
  void (*pack)(int64_t n, int64_t k, const int8_t* q, int8_t* packed);
  // x: [rows, k] -> q: [rows, groups(k)], scales, zeros: [rows]. A row with a NaN or infinity gets the scale NaN.
  void (*quantize_rows)(int64_t rows, int64_t k, const float* x, int32_t* q, float* scales, int32_t* zeros);
  void (*multiply)(const Int8Product&);

  int64_t groups(int64_t k) const { return (k + together - 1) / together; }
};

struct Int8Ways {
  Int8Kernels words, bytes;  // bytes.multiply is null where it is not written
};
const Int8Ways& int8_ways(Level level);

// The faster way this CPU has at the level.
const Int8Kernels& int8_kernels(Level level = current_level());

// The largest quantised activation, as a distance from the row's zero: all that 12 or 8 bits hold, less where a sum of
// k products could reach 2^31. Steps of int16 go so far to either side, those of uint8 are so many in all.
int32_t int8_activation_limit(int64_t together, int64_t k);
// The step between two activations as a share of the row's largest size, at most.
double int8_activation_step(int64_t together, int64_t k);

// Bytes of some packed columns of W^T: their weights and, before those of bytes, each column's sum, which takes off
// what the zero in every activation adds.
constexpr int64_t packed_int8_columns(int64_t columns, int64_t groups, int64_t together) {
  return columns * (groups * together + (together == 4 ? 4 : 0));
}
int64_t packed_int8_size(int64_t n, int64_t k, const Int8Kernels& kernels);

}  // namespace fovea::kernels
