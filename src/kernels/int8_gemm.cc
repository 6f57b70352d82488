#include "kernels/int8_gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/level_table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

FOVEA_LEVEL_TABLES(Int8Kernels, int8_table, int8_kernels)

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
    float largest = 0;
    for (int64_t p = 0; p < columns; ++p) {
      if (!std::isfinite(row[p])) return false;
      largest = std::max(largest, std::fabs(row[p]));
    }
    const float scale = scale_of(largest);
    if (!std::isfinite(scale)) return false;
    scales[i] = scale;
    for (int64_t p = 0; p < columns; ++p)
      q[i * columns + p] =
          static_cast<int8_t>(scale == 0 ? 0 : std::clamp(std::nearbyint(row[p] / scale), -127.0f, 127.0f));
  }
  return true;
}

int32_t int8_activation_limit(int64_t k) {
  const int64_t most = std::numeric_limits<int32_t>::max() / (127 * std::max<int64_t>(1, k));
  return static_cast<int32_t>(std::min<int64_t>(kInt8Activation, most));
}

bool has_dot_products(Level level) {
#if defined(__x86_64__)
  struct Features {
    bool avx512 = false, avx = false;
  };
  // Asked of the CPU itself: not every compiler knows the name "avxvnni".
  static const Features features = [] {
    Features found;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
    found.avx512 = (c >> 11 & 1) != 0;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) found.avx = (a >> 4 & 1) != 0;
    return found;
  }();
  return (level == Level::avx512 && features.avx512) || (level == Level::avx2 && features.avx);
#else
  (void)level;
  return false;
#endif
}

void int8_multiply(const Int8Product& product, Level level) {
  const Int8Kernels& kernels = int8_kernels(level);
  const auto multiply =
      kernels.multiply_dot != nullptr && has_dot_products(level) ? kernels.multiply_dot : kernels.multiply;
  multiply(product);
}

int64_t packed_int8_size(int64_t n, int64_t k, Level level) {
  const int64_t columns = int8_kernels(level).panel_columns;
  return (n + columns - 1) / columns * columns * int8_depth(k);
}

}  // namespace fovea::kernels
