// Which attention weights dropout keeps: a function of (seed; b, h, i, j) alone, cheap enough to be drawn
// again in the backward pass instead of being stored.
//
// A row's key is one Philox call over (seed; b, h, i). Along the row a 32-bit mix of that key and j / 2 gives
// two draws of 16 bits, so a vector of rows needs one mix for two keys; the row's salt enters between the two
// multiplications, so that rows whose counters overlap still differ.
#pragma once

#include <cstdint>

namespace fovea::kernels {

struct DropoutRow {
  uint32_t start = 0, salt = 0;
};

DropoutRow dropout_row(uint64_t seed, int64_t b, int64_t h, int64_t i);

inline constexpr uint32_t kDropoutStep = 0x9E3779B9u;
inline constexpr uint32_t kDropoutMix1 = 0x7FEB352Du;
inline constexpr uint32_t kDropoutMix2 = 0x846CA68Bu;

// The 16-bit draw of key j; a weight is dropped when it is below dropout_threshold(p).
constexpr uint32_t dropout_draw(DropoutRow row, int64_t j) {
  uint32_t x = row.start + static_cast<uint32_t>(j / 2) * kDropoutStep;
  x ^= x >> 16;
  x *= kDropoutMix1;
  x ^= row.salt;
  x ^= x >> 15;
  x *= kDropoutMix2;
  x ^= x >> 16;
  return j % 2 ? x >> 16 : x & 0xFFFFu;
}

constexpr uint32_t dropout_threshold(float p) {
  return static_cast<uint32_t>(p * 65536.0f + 0.5f);
}

// Whether dropout with probability p keeps the weight of query i on key j.
inline bool attention_keep(uint64_t seed, int64_t b, int64_t h, int64_t i, int64_t j, float p) {
  return dropout_draw(dropout_row(seed, b, h, i), j) >= dropout_threshold(p);
}

}  // namespace fovea::kernels
