// Which attention weights dropout keeps: a function of (seed; b, h, i, j) alone.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace fovea::kernels::rows_dropout {

struct Row {
  uint32_t start = 0, salt = 0;
};

inline Row row(uint64_t seed, int64_t b, int64_t h, int64_t i) {
  const auto bits =
      philox(seed, static_cast<uint64_t>(i), static_cast<uint64_t>(b) << 32 | static_cast<uint32_t>(h));
  return {bits[0], bits[1]};
}

// The 16-bit draw of key j; a weight is dropped when it is below threshold(p).
constexpr uint32_t draw(Row row, int64_t j) {
  uint32_t x = row.start + static_cast<uint32_t>(j / 2) * 0x9E3779B9u;
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= row.salt;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return j % 2 ? x >> 16 : x & 0xFFFFu;
}

constexpr uint32_t threshold(float p) {
  return static_cast<uint32_t>(p * 65536.0f + 0.5f);
}

inline bool keep(uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j, float p) {
  return draw(row(seed, b, h, i), j) >= threshold(p);
}

}  // namespace fovea::kernels::rows_dropout
