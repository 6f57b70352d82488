// What dropout is: element i of a tensor is dropped by the draw (seed; i), so that forward and backward need
// no stored mask and agree for any cut of the work.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace fovea::kernels {

struct Dropout {
  float probability = 0;  // of dropping, in [0, 1]; kept elements are divided by 1 - p
  uint64_t seed = 0;

  bool active() const { return probability > 0; }
  // An element is kept when its 32 bits are at least this.
  uint32_t threshold() const {
    const double bits = static_cast<double>(probability) * 0x1p32;
    return bits >= 0x1p32 ? ~0u : static_cast<uint32_t>(bits);
  }
  float scale() const { return probability < 1 ? 1 / (1 - probability) : 0.0f; }
  // What element i is multiplied by: 0 or scale().
  float factor(int64_t i) const {
    const uint32_t bits = philox(seed, static_cast<uint64_t>(i) / 4)[i % 4];
    return bits >= threshold() ? scale() : 0.0f;
  }
};

}  // namespace fovea::kernels
