// The random draws of sampled selections (hard, Gumbel): functions of (seed; b, h, i, j) alone, so that
// tiles, threads and direction cannot change them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "base/rng.h"

namespace fovea::kernels {

// 4 x 32 random bits for query i and the keys 4 * four ... 4 * four + 3 of (batch b, head h).
inline std::array<uint32_t, 4> attention_four_bits(uint64_t seed, int64_t b, int64_t h, int64_t i,
                                                   int64_t four) {
  const uint64_t row = static_cast<uint64_t>(i) << 32 | static_cast<uint32_t>(four);
  const uint64_t head = static_cast<uint64_t>(b) << 32 | static_cast<uint32_t>(h);
  return philox(seed, row, head);
}

// 32 random bits for query i and key j.
inline uint32_t attention_bits(uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j) {
  return attention_four_bits(seed, b, h, i, j / 4)[j % 4];
}

// Standard Gumbel noise, -log(-log(u)), u = (the 23 high bits + 0.5) / 2^23: exact in float and never 0 or 1.
// argmax_j(score + noise) is one draw from softmax(score).
inline float gumbel_from_bits(uint32_t bits) {
  const float u = (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f;
  return -std::log(-std::log(u));
}

inline float attention_gumbel(uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j) {
  return gumbel_from_bits(attention_bits(seed, b, h, i, j));
}

}  // namespace fovea::kernels
