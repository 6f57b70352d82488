// What kernel tests share: sizes around every vector width, guarded arrays, comparison with the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/rng.h"

namespace fovea::testing {

inline const std::vector<int64_t>& odd_sizes() {
  static const std::vector<int64_t> sizes{0, 1, 3, 7, 8, 16, 31, 37, 65, 130, 1023};
  return sizes;
}

// The levels to hold against the scalar reference.
inline std::span<const Level> vector_levels() {
  return available_levels().subspan(1);
}

// Floats between two guard zones: a kernel that writes outside is found out.
class Guarded {
 public:
  explicit Guarded(int64_t count, float value = 0) : values_(count + 2 * kGuard, kMark) {
    for (int64_t i = 0; i < count; ++i) values_[kGuard + i] = value;
  }
  static Guarded random(int64_t count, uint64_t seed, float scale = 1) {
    Guarded result(count);
    Rng rng(seed);
    for (float& x : result) x = scale * rng.normal();
    return result;
  }
  static Guarded random_positive(int64_t count, uint64_t seed) {
    Guarded result = random(count, seed);
    for (float& x : result) x = std::fabs(x) + 0.1f;
    return result;
  }
  float* data() { return values_.data() + kGuard; }
  const float* data() const { return values_.data() + kGuard; }
  int64_t size() const { return static_cast<int64_t>(values_.size()) - 2 * kGuard; }
  float* begin() { return data(); }
  float* end() { return data() + size(); }
  float& operator[](int64_t i) { return data()[i]; }
  float operator[](int64_t i) const { return data()[i]; }
  bool guards_intact() const {
    const auto intact = [](float x) { return x == kMark; };
    return std::all_of(values_.begin(), values_.begin() + kGuard, intact) &&
           std::all_of(values_.end() - kGuard, values_.end(), intact);
  }

 private:
  static constexpr int64_t kGuard = 16;
  static constexpr float kMark = 12345.678f;
  std::vector<float> values_;
};

// |got - wanted| <= tolerance * (1 + |wanted|), element by element, and nothing written outside.
inline void expect_close(const Guarded& got, const Guarded& wanted, float tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  EXPECT_TRUE(got.guards_intact()) << what << ": wrote outside its array";
  for (int64_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]))) continue;
    ASSERT_LE(std::fabs(got[i] - wanted[i]), tolerance * (1 + std::fabs(wanted[i])))
        << what << ": element " << i << " is " << got[i] << ", wanted " << wanted[i];
  }
}

inline void expect_same_bits(const Guarded& got, const Guarded& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (int64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], wanted[i]) << what << ": element " << i;
}

}  // namespace fovea::testing
