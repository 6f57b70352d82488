#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/gemm/int8_gemm.h"

namespace fovea::kernels::scalar {

extern const Int8Ways int8_table;

namespace {

template <class Activation>
const Int8Kernels& way() {
  return sizeof(Activation) == 2 ? int8_table.words : int8_table.bytes;
}
template <class Activation>
constexpr bool kBytes = sizeof(Activation) == 1;

// A column: its sum where activations are bytes, and its weights, zeros up to a whole group.
template <class Activation>
void pack(int64_t n, int64_t k, const int8_t* q, int8_t* packed) {
  const int64_t depth = way<Activation>().groups(k) * way<Activation>().together;
  for (int64_t j = 0; j < n; ++j) {
    if (kBytes<Activation>) {
      int32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += q[j * k + p];
      std::memcpy(packed, &sum, sizeof sum);
      packed += sizeof sum;
    }
    for (int64_t p = 0; p < depth; ++p) *packed++ = p < k ? q[j * k + p] : 0;
  }
}

// Half of what a row's steps reach over: from -largest to largest, or from its least to its largest value.
struct Reach {
  float half, low;
};
template <class Activation>
Reach reach_of(int64_t k, const float* x) {
  float low = 0, high = 0, largest = 0;
  for (int64_t p = 0; p < k; ++p) {
    low = std::min(low, x[p]);
    high = std::max(high, x[p]);
    largest = std::max(largest, std::fabs(x[p]));
  }
  return kBytes<Activation> ? Reach{0.5f * high - 0.5f * low, low} : Reach{largest, 0};
}

template <class Activation>
void quantize_rows(int64_t rows, int64_t k, const float* x, int32_t* q, float* scales, int32_t* zeros) {
  const int64_t groups = way<Activation>().groups(k), together = way<Activation>().together;
  const int32_t limit = int8_activation_limit(together, k);
  const float half_limit = (kBytes<Activation> ? 0.5f : 1.0f) * static_cast<float>(limit);
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * k;
    const bool finite = std::all_of(row, row + k, [](float value) { return std::isfinite(value); });
    const Reach reach = finite ? reach_of<Activation>(k, row) : Reach{};
    const bool counts = reach.half >= 1e-30f;
    scales[i] = finite ? (counts ? reach.half / half_limit : 0) : std::numeric_limits<float>::quiet_NaN();
    const float inverse = counts ? half_limit / reach.half : 0;
    zeros[i] = static_cast<int32_t>(std::nearbyint(-reach.low * inverse));
    for (int64_t p = 0; p < groups * together; ++p) {
      auto value = static_cast<int32_t>(p < k && counts ? std::nearbyint(row[p] * inverse) : 0) + zeros[i];
      if (kBytes<Activation>) value = std::clamp(value, 0, limit);
      const auto stored = static_cast<Activation>(value);
      std::memcpy(reinterpret_cast<char*>(q + i * groups) + p * static_cast<int64_t>(sizeof stored), &stored,
                  sizeof stored);
    }
  }
}

template <class Activation>
void multiply(const Int8Product& g) {
  const int64_t groups = way<Activation>().groups(g.k), depth = groups * way<Activation>().together;
  const int64_t stride = packed_int8_columns(1, groups, way<Activation>().together), head = stride - depth;
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = g.column_begin; j < g.column_end; ++j) {
      const int8_t* column = g.packed + j * stride;
      int64_t sum = 0;
      if (head > 0) {
        int32_t weights = 0;
        std::memcpy(&weights, column, sizeof weights);
        sum = -int64_t{g.a_zeros[i]} * weights;
      }
      for (int64_t p = 0; p < depth; ++p) {
        Activation a;
        std::memcpy(&a, reinterpret_cast<const char*>(g.a + i * groups) + p * static_cast<int64_t>(sizeof a),
                    sizeof a);
        sum += int64_t{a} * column[head + p];
      }
      const float bias = g.bias != nullptr ? g.bias[j] : 0;
      g.c[i * g.ldc + j] =
          static_cast<float>(static_cast<int32_t>(sum)) * (g.a_scales[i] * g.scales[j]) + bias;
    }
}

}  // namespace

const Int8Ways int8_table{.words = {.panel_columns = 1,
                                    .together = 2,
                                    .pack = pack<int16_t>,
                                    .quantize_rows = quantize_rows<int16_t>,
                                    .multiply = multiply<int16_t>},
                          .bytes = {.panel_columns = 1,
                                    .together = 4,
                                    .pack = pack<uint8_t>,
                                    .quantize_rows = quantize_rows<uint8_t>,
                                    .multiply = multiply<uint8_t>}};

}  // namespace fovea::kernels::scalar
