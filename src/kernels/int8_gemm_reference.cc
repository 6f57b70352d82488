#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/int8_gemm.h"

namespace fovea::kernels::scalar {
namespace {

void pack(int64_t n, int64_t k, const int8_t* q, int8_t* packed) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t p = 0; p < int8_depth(k); ++p) packed[j * int8_depth(k) + p] = p < k ? q[j * k + p] : 0;
}

void quantize_rows(int64_t rows, int64_t k, const float* x, int16_t* q, float* scales) {
  const auto limit = static_cast<float>(int8_activation_limit(k));
  for (int64_t i = 0; i < rows; ++i) {
    float largest = 0;
    bool finite = true;
    for (int64_t p = 0; p < k; ++p) {
      finite = finite && std::isfinite(x[i * k + p]);
      largest = std::max(largest, std::fabs(x[i * k + p]));
    }
    const bool counts = finite && largest >= 1e-30f;
    scales[i] = finite ? (counts ? largest / limit : 0) : std::numeric_limits<float>::quiet_NaN();
    const float inverse = counts ? limit / largest : 0;
    for (int64_t p = 0; p < int8_depth(k); ++p)
      q[i * int8_depth(k) + p] =
          p < k && counts ? static_cast<int16_t>(std::nearbyint(x[i * k + p] * inverse)) : 0;
  }
}

void multiply(const Int8Product& g) {
  const int64_t depth = int8_depth(g.k);
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = g.column_begin; j < g.column_end; ++j) {
      int32_t sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += int32_t{g.a[i * depth + p]} * g.packed[j * depth + p];
      const float bias = g.bias != nullptr ? g.bias[j] : 0;
      g.c[i * g.ldc + j] = static_cast<float>(sum) * (g.a_scales[i] * g.scales[j]) + bias;
    }
}

}  // namespace

extern const Int8Kernels int8_table;
const Int8Kernels int8_table{.panel_columns = 1,
                             .pack = pack,
                             .quantize_rows = quantize_rows,
                             .multiply = multiply,
                             .multiply_dot = nullptr};

}  // namespace fovea::kernels::scalar
