#include "kernels/gemm/int8_gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(Int8Ways, int8_table, int8_ways)

namespace fovea::kernels {
namespace {

// largest / 127, rounded up to 17 significant bits; 0 for a row of (all but) zeros.
float scale_of(float largest) {
  if (largest < 1e-30f) return 0;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(largest / 127) + 127u) & ~127u);
}

}  // namespace

bool quantize_int8(int64_t rows, int64_t columns, const float* weights, int8_t* q, float* scales) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = weights + i * columns;
    // Sizes of numbers are in the order of their bits, those that are not finite at the end.
    int32_t largest = 0;
    for (int64_t p = 0; p < columns; ++p)
      largest = std::max(largest, std::bit_cast<int32_t>(row[p]) & 0x7fffffff);
    const float scale = scale_of(std::bit_cast<float>(largest));
    if (!std::isfinite(std::bit_cast<float>(largest)) || !std::isfinite(scale)) return false;
    scales[i] = scale;
    int8_t* const out = q + i * columns;
    if (scale == 0) {
      std::fill_n(out, columns, int8_t{0});
      continue;
    }
    // Above 2^23 floats are whole numbers: adding 1.5 * 2^23 rounds to the nearest, as nearbyint() does.
    constexpr float kWhole = 12582912.0f;
    for (int64_t p = 0; p < columns; ++p) {
      const float rounded = (row[p] / scale + kWhole) - kWhole;
      out[p] = static_cast<int8_t>(std::min(std::max(rounded, -127.0f), 127.0f));
    }
  }
  return true;
}

int32_t int8_activation_limit(int64_t together, int64_t k) {
  const int64_t most = std::numeric_limits<int32_t>::max() / (127 * std::max<int64_t>(1, k));
  return static_cast<int32_t>(std::min<int64_t>(together == 2 ? 2047 : 255, most));
}

double int8_activation_step(int64_t together, int64_t k) {
  return (together == 2 ? 1.0 : 2.0) / int8_activation_limit(together, k);
}

const Int8Kernels& int8_kernels(Level level) {
  const Int8Ways& ways = int8_ways(level);
  return ways.bytes.multiply != nullptr && has_dot_products(level) ? ways.bytes : ways.words;
}

int64_t packed_int8_size(int64_t n, int64_t k, const Int8Kernels& kernels) {
  const int64_t columns = kernels.panel_columns, panels = (n + columns - 1) / columns;
  return packed_int8_columns(panels * columns, kernels.groups(k), kernels.together);
}

}  // namespace fovea::kernels
