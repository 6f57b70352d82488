#include "nn/positions.h"

#include <cmath>

namespace fovea::nn {

Tensor sinusoid(std::span<const int32_t> positions, int64_t d) {
  const Tensor table({static_cast<int64_t>(positions.size()), d});
  float* out = table.data();
  for (const int32_t position : positions) {
    for (int64_t c = 0; c < d; ++c) {
      const double angle =
          position * std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(d));
      *out++ = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

std::vector<int32_t> packed_positions(std::span<const int64_t> lengths) {
  std::vector<int32_t> positions;
  for (const int64_t length : lengths)
    for (int64_t i = 0; i < length; ++i) positions.push_back(static_cast<int32_t>(i));
  return positions;
}

}  // namespace fovea::nn
