// Products with weights of eight bits: y = x W^T + bias, W of int8 with one scale for each of its rows.
//
// Rows of x are quantised as they come, each by its own scale, to at most kInt8Activation: the multiply-add
// of int16 pairs is exact and, on CPUs without dot products of bytes, as fast as the one of bytes, whose sums
// saturate. So twelve bits of x cost nothing. Sums are exact integers below 2^31; they depend on no order, no
// batch, no thread, no level.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

inline constexpr int32_t kInt8Activation = 2047;

// Rows of weights as integers: w[i][p] is about q[i][p] * scales[i], |q| <= 127. A scale has 17 significant
// bits, so that q * scale is an exact float, and quantising those floats again gives the same q and scale.
// False when a weight is not finite.
bool quantize_int8(int64_t rows, int64_t columns, const float* weights, int8_t* q, float* scales);

// The columns of a quantised row: k, and one zero more when k is odd.
constexpr int64_t int8_depth(int64_t k) {
  return (k + 1) / 2 * 2;
}

// The largest quantised activation: kInt8Activation, less where a sum of k products could reach 2^31.
int32_t int8_activation_limit(int64_t k);

struct Int8Product {
  int64_t m = 0, n = 0, k = 0;
  int64_t column_begin = 0, column_end = 0;  // multiples of panel_columns; the end may also be n
  const int16_t* a = nullptr;                // [m, int8_depth(k)]
  const float* a_scales = nullptr;           // [m]
  const int8_t* packed = nullptr;
  const float* scales = nullptr;  // [n]
  const float* bias = nullptr;    // [n] or null
  float* c = nullptr;             // [m, n]: c = sum * (a_scale * scale) + bias
  int64_t ldc = 0;
};

// On the calling thread.
struct Int8Kernels {
  int64_t panel_columns;
  // q: [n, k] -> packed_int8_size() bytes.
  void (*pack)(int64_t n, int64_t k, const int8_t* q, int8_t* packed);
  // x: [rows, k] -> q: [rows, int8_depth(k)], scales: [rows]. A row with a NaN or infinity gets the scale
  // NaN.
  void (*quantize_rows)(int64_t rows, int64_t k, const float* x, int16_t* q, float* scales);
  void (*multiply)(const Int8Product&);
  void (*multiply_dot)(
      const Int8Product&);  // the same on CPUs with has_dot_products(); null: none is written
};

const Int8Kernels& int8_kernels(Level level = current_level());

// Whether the CPU sums the products of pairs of int16 in one instruction of this level: VNNI, with AVX-512 or
// without.
bool has_dot_products(Level level);

// The fastest product this CPU has at the level, on the calling thread.
void int8_multiply(const Int8Product& product, Level level = current_level());

int64_t packed_int8_size(int64_t n, int64_t k, Level level = current_level());

}  // namespace fovea::kernels
