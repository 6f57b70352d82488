#include "nn/positions.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

namespace fovea::nn {

Tensor sinusoid(std::span<const int32_t> positions, int64_t d, SinusoidOrder order) {
  const Tensor table({static_cast<int64_t>(positions.size()), d});
  std::vector<double> rates;
  for (int64_t c = 0; c < d; c += 2)
    rates.push_back(std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(d)));
  // A packed batch has each position many times: sines are taken once.
  std::unordered_map<int32_t, const float*> made;
  float* row = table.data();
  for (const int32_t position : positions) {
    const auto [place, fresh] = made.emplace(position, row);
    if (fresh) {
      const int64_t sines = (d + 1) / 2;
      for (int64_t c = 0; c < d; ++c) {
        const double angle = position * rates[static_cast<size_t>(c / 2)];
        const int64_t column = order == SinusoidOrder::interleaved ? c : c / 2 + (c % 2) * sines;
        row[column] = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    } else {
      std::copy_n(place->second, d, row);
    }
    row += d;
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
