#include "kernels/vector/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

namespace fovea {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Function = void (*)(const float*, float*, int64_t);

// Floats from low to high in equal steps of their bit pattern, both signs where the range has them.
std::vector<float> floats_between(float low, float high, int32_t step = 997) {
  std::vector<float> x{low, high};
  for (uint32_t bits = 0; bits < 0x7F800000u; bits += static_cast<uint32_t>(step))
    for (uint32_t sign : {0u, 0x80000000u}) {
      const uint32_t pattern = bits | sign;
      float value;
      std::memcpy(&value, &pattern, sizeof value);
      if (value >= low && value <= high) x.push_back(value);
    }
  return x;
}

// Largest distance from the exact value, in units of the last place of a float of that size.
double worst_ulp(Function f, double (*exact)(double), const std::vector<float>& x) {
  std::vector<float> y(x.size());
  f(x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = exact(x[i]);
    const double size = std::max(std::abs(wanted), 0x1p-126);
    const double ulp = std::exp2(std::floor(std::log2(size)) - 23);
    const double error = std::abs(y[i] - wanted) / ulp;
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

float at(Function f, float x) {
  float y;
  f(&x, &y, 1);
  return y;
}

class VectorMath : public testing::TestWithParam<Level> {
 protected:
  const kernels::VectorMathKernels& table = kernels::vector_math_kernels(GetParam());
};

TEST_P(VectorMath, ExpIsWithinTwoUlpOverTheWholeRange) {
  EXPECT_LE(worst_ulp(table.exp, std::exp, floats_between(-103.9f, 88.72f)), 2);
  EXPECT_LE(worst_ulp(table.exp_nonpositive, std::exp, floats_between(-87.3f, 0)), 2);
}

TEST_P(VectorMath, LogIsWithinTwoUlp) {
  EXPECT_LE(worst_ulp(table.log, std::log, floats_between(1e-45f, 3.4e38f)), 2);
}

TEST_P(VectorMath, TanhIsWithinSixUlpAndNeverBeyondOne) {
  const auto x = floats_between(-100, 100);
  EXPECT_LE(worst_ulp(table.tanh, std::tanh, x), 6);
  std::vector<float> y(x.size());
  table.tanh(x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (float value : y) ASSERT_LE(std::abs(value), 1);
}

TEST_P(VectorMath, SigmoidIsWithinFourUlp) {
  const auto exact = +[](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LE(worst_ulp(table.sigmoid, exact, floats_between(-87, 100)), 4);
}

TEST_P(VectorMath, ErfIsWithinSixUlp) {
  EXPECT_LE(worst_ulp(table.erf, std::erf, floats_between(-100, 100)), 6);
}

TEST_P(VectorMath, OddFunctionsKeepTheSign) {
  for (Function f : {table.tanh, table.erf})
    for (float x : {0.0f, 1e-30f, 1e-4f, 0.3f, 2.0f, 50.0f}) EXPECT_EQ(at(f, -x), -at(f, x)) << x;
}

TEST_P(VectorMath, LimitsAreExact) {
  EXPECT_EQ(at(table.exp, -kInf), 0);
  EXPECT_EQ(at(table.exp_nonpositive, -kInf), 0);
  EXPECT_EQ(at(table.exp, kInf), kInf);
  EXPECT_EQ(at(table.exp, 89), kInf);
  EXPECT_EQ(at(table.exp, 0), 1);
  EXPECT_EQ(at(table.exp_nonpositive, 0), 1);
  EXPECT_EQ(at(table.log, 0), -kInf);
  EXPECT_EQ(at(table.log, 1), 0);
  EXPECT_EQ(at(table.log, kInf), kInf);
  EXPECT_TRUE(std::isnan(at(table.log, -1)));
  EXPECT_EQ(at(table.tanh, kInf), 1);
  EXPECT_EQ(at(table.tanh, -kInf), -1);
  EXPECT_EQ(at(table.sigmoid, -kInf), 0);
  EXPECT_EQ(at(table.sigmoid, kInf), 1);
  EXPECT_EQ(at(table.erf, kInf), 1);
}

TEST_P(VectorMath, NanStaysNan) {
  for (Function f : {table.exp, table.exp_nonpositive, table.log, table.tanh, table.sigmoid, table.erf})
    EXPECT_TRUE(std::isnan(at(f, kNan))) << at(f, kNan);
}

TEST_P(VectorMath, TailsEqualWholeVectors) {
  std::vector<float> x(67), whole(67);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i) - 3;
  table.tanh(x.data(), whole.data(), 67);
  for (int64_t count = 0; count < 67; ++count) {
    std::vector<float> part(67, -7);
    table.tanh(x.data(), part.data(), count);
    for (int64_t i = 0; i < 67; ++i) ASSERT_EQ(part[i], i < count ? whole[i] : -7) << count << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, VectorMath,
                         testing::ValuesIn(available_levels().begin(), available_levels().end()),
                         [](const auto& level) { return std::string(level_name(level.param)); });

}  // namespace
}  // namespace fovea
