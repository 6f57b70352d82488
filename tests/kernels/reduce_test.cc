#include "kernels/vector/reduce.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

using testing::Guarded;

const std::vector<AxisShape>& shapes() {
  static const std::vector<AxisShape> all{
      {1, 1, 1},     {3, 0, 5}, {0, 3, 5},     {3, 5, 0},    {7, 37, 1},     {1, 70001, 1}, {3, 40000, 1},
      {1, 1023, 37}, {5, 7, 3}, {40, 130, 65}, {1, 3, 9000}, {2, 4097, 130}, {1, 20000, 2}, {29, 2, 1},
  };
  return all;
}

TEST(SumAxis, EveryLevelEqualsDoubleSums) {
  for (const Level level : available_levels())
    for (const AxisShape& s : shapes()) {
      const Guarded x = Guarded::random(s.outer * s.axis * s.inner, 1);
      Guarded y(s.outer * s.inner, 9), wanted(s.outer * s.inner);
      sum_axis(x.data(), s, y.data(), reduce_kernels(level));
      for (int64_t o = 0; o < s.outer; ++o)
        for (int64_t j = 0; j < s.inner; ++j) {
          double total = 0;
          for (int64_t i = 0; i < s.axis; ++i) total += x[(o * s.axis + i) * s.inner + j];
          wanted[o * s.inner + j] = static_cast<float>(total);
        }
      // Float chains over at most 1024 rows; sums of random signs are about sqrt(axis) large.
      testing::expect_close(y, wanted, 2e-7f * (10 + std::sqrt(static_cast<float>(s.axis))),
                            std::string(level_name(level)) + " axis " + std::to_string(s.axis));
    }
}

TEST(SumAxis, DoesNotDependOnThreads) {
  for (const AxisShape& s : shapes()) {
    const Guarded x = Guarded::random(s.outer * s.axis * s.inner, 1);
    Guarded one(s.outer * s.inner), three(s.outer * s.inner);
    set_num_threads(1);
    sum_axis(x.data(), s, one.data());
    set_num_threads(3);
    sum_axis(x.data(), s, three.data());
    set_num_threads(0);
    testing::expect_same_bits(three, one, "axis " + std::to_string(s.axis));
  }
}

TEST(MaxAxis, FindsTheFirstMaximumOnEveryLevel) {
  for (const Level level : available_levels())
    for (const AxisShape& s : shapes()) {
      if (s.axis == 0) continue;
      Guarded x = Guarded::random(s.outer * s.axis * s.inner, 1);
      for (float& v : x) v = std::round(2 * v);  // many ties
      Guarded y(s.outer * s.inner);
      std::vector<int32_t> index(s.outer * s.inner);
      max_axis(x.data(), s, y.data(), index.data(), reduce_kernels(level));
      for (int64_t o = 0; o < s.outer; ++o)
        for (int64_t j = 0; j < s.inner; ++j) {
          int64_t best = 0;
          const auto at = [&](int64_t i) { return x[(o * s.axis + i) * s.inner + j]; };
          for (int64_t i = 1; i < s.axis; ++i)
            if (at(i) > at(best)) best = i;
          ASSERT_EQ(index[o * s.inner + j], best) << level_name(level);
          ASSERT_EQ(y[o * s.inner + j], at(best));
        }
    }
}

TEST(MaxAxis, NanCountsAsLargest) {
  for (const Level level : available_levels())
    for (const int64_t inner : {1, 2}) {
      Guarded x = Guarded::random(37 * inner, 1), y(inner);
      x[20 * inner] = x[30 * inner] = std::numeric_limits<float>::quiet_NaN();
      int32_t index[2];
      max_axis(x.data(), {1, 37, inner}, y.data(), index, reduce_kernels(level));
      EXPECT_EQ(index[0], 20);
      EXPECT_TRUE(std::isnan(y[0]));
    }
}

// Pairs have code of their own.
TEST(MaxAxis, PairsAreComparedAsLongerRunsAre) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float values[] = {nan, -inf, -1, 0, 1, inf};
  for (const float first : values)
    for (const float second : values) {
      const float pair[] = {first, second}, run[] = {first, second, -inf};
      float y[2];
      int32_t index[2];
      max_axis(pair, {1, 2, 1}, &y[0], &index[0]);
      max_axis(run, {1, 3, 1}, &y[1], &index[1]);
      EXPECT_EQ(index[0], index[1]) << first << " and " << second;
      EXPECT_TRUE(y[0] == y[1] || (std::isnan(y[0]) && std::isnan(y[1]))) << first << " and " << second;
    }
}

TEST(SumDimensions, SumsAnySetOfDimensions) {
  const std::vector<int64_t> sizes{3, 1, 5, 7, 2};
  const Guarded x = Guarded::random(210, 1);
  for (unsigned set = 0; set < 32; ++set) {
    bool summed[5];
    int64_t kept = 1;
    for (int i = 0; i < 5; ++i) {
      summed[i] = set >> i & 1;
      if (!summed[i]) kept *= sizes[i];
    }
    Guarded y(kept), wanted(kept);
    sum_dimensions(x.data(), sizes, summed, y.data());
    for (int64_t i = 0; i < 210; ++i) {
      int64_t rest = i, place = 0, stride = 1;
      for (int k = 4; k >= 0; rest /= sizes[k], --k)
        if (!summed[k]) place += rest % sizes[k] * stride, stride *= sizes[k];
      wanted[place] += x[i];
    }
    testing::expect_close(y, wanted, 1e-5f, "set " + std::to_string(set));
  }
}

}  // namespace
}  // namespace fovea::kernels
