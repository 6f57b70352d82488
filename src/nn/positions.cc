#include "nn/positions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace fovea::nn {

namespace {

// Makes rows of one width and order, and keeps those of the first positions, as far as they were requested: a decoder
// asks for one at every token.
class SinusoidRows {
 public:
  SinusoidRows(int64_t d, SinusoidOrder order) : d_(d), order_(order) {
    for (int64_t c = 0; c < d; c += 2)
      rates_.push_back(std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(d)));
  }
  void write(int32_t position, float* row) {
    constexpr int32_t kKept = 4096;
    if (position < 0 || position >= kKept) return make(position, row);
    while (static_cast<int64_t>(kept_.size()) <= position * d_) {
      kept_.resize(kept_.size() + static_cast<size_t>(d_));
      make(made_++, kept_.data() + kept_.size() - static_cast<size_t>(d_));
    }
    std::copy_n(kept_.data() + position * d_, d_, row);
  }

 private:
  void make(int32_t position, float* row) const {
    const int64_t sines = (d_ + 1) / 2;
    for (int64_t c = 0; c < d_; ++c) {
      const double angle = position * rates_[static_cast<size_t>(c / 2)];
      const int64_t column = order_ == SinusoidOrder::interleaved ? c : c / 2 + (c % 2) * sines;
      row[column] = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }

  int64_t d_;
  SinusoidOrder order_;
  std::vector<double> rates_;
  std::vector<float> kept_;  // [made, d]
  int32_t made_ = 0;
};

}  // namespace

Tensor sinusoid(std::span<const int32_t> positions, int64_t d, SinusoidOrder order) {
  static std::mutex mutex;
  static std::map<std::pair<int64_t, SinusoidOrder>, SinusoidRows> all;
  Tensor result({static_cast<int64_t>(positions.size()), d});
  if (d == 0) return result;
  const std::lock_guard lock(mutex);
  SinusoidRows& rows = all.try_emplace({d, order}, d, order).first->second;
  for (size_t i = 0; i < positions.size(); ++i)
    rows.write(positions[i], result.data() + static_cast<int64_t>(i) * d);
  return result;
}

std::vector<int32_t> packed_positions(std::span<const int64_t> lengths) {
  std::vector<int32_t> positions;
  for (const int64_t length : lengths)
    for (int64_t i = 0; i < length; ++i) positions.push_back(static_cast<int32_t>(i));
  return positions;
}

}  // namespace fovea::nn
