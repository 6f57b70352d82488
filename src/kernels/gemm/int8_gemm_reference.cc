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
// What is added to an activation to store it.
template <class Activation>
constexpr int32_t kZero = sizeof(Activation) == 2 ? 0 : 128;

// A column: its start where activations are bytes, and its weights, zeros up to a whole group.
template <class Activation>
void pack(int64_t n, int64_t k, const int8_t* q, int8_t* packed) {
  const int64_t depth = way<Activation>().groups(k) * way<Activation>().together;
  for (int64_t j = 0; j < n; ++j) {
    if (kZero<Activation> != 0) {
      uint32_t start = 0;  // may wrap, as the sum then does: the two come out right
      for (int64_t p = 0; p < k; ++p) start -= static_cast<uint32_t>(kZero<Activation> * q[j * k + p]);
      std::memcpy(packed, &start, sizeof start);
      packed += sizeof start;
    }
    for (int64_t p = 0; p < depth; ++p) *packed++ = p < k ? q[j * k + p] : 0;
  }
}

template <class Activation>
void quantize_rows(int64_t rows, int64_t k, const float* x, int32_t* q, float* scales) {
  const int64_t groups = way<Activation>().groups(k), together = way<Activation>().together;
  const auto limit = static_cast<float>(int8_activation_limit(way<Activation>().together, k));
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
    for (int64_t p = 0; p < groups * together; ++p) {
      const auto value = static_cast<int32_t>(p < k && counts ? std::nearbyint(x[i * k + p] * inverse) : 0);
      const auto stored = static_cast<Activation>(value + kZero<Activation>);
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
      int32_t start = 0;
      if (head > 0) std::memcpy(&start, column, sizeof start);
      int64_t sum = start;
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
