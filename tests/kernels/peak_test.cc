#include "kernels/peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "base/parallel.h"

namespace fovea::kernels {
namespace {

class PeakOnLevel : public testing::TestWithParam<Level> {};

TEST_P(PeakOnLevel, SumIsExactForSmallIntegers) {
  const PeakKernels& kernels = peak_kernels(GetParam());
  for (const int64_t count : {0, 1, 7, 31, 32, 33, 257}) {
    std::vector<float> x(count);
    std::iota(x.begin(), x.end(), 1.f);
    EXPECT_EQ(kernels.sum(x.data(), count), static_cast<float>(count * (count + 1) / 2));
  }
}

TEST_P(PeakOnLevel, TriadWritesEveryElementAndNoMore) {
  const PeakKernels& kernels = peak_kernels(GetParam());
  for (const int64_t count : {0, 1, 5, 16, 67}) {
    for (const int64_t shift : {0, 1, 3}) {
      std::vector<float> a(count, 2), b(count, 5), out(count + shift + 1, -1);
      kernels.triad(out.data() + shift, a.data(), b.data(), 3, count);
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(out[shift + i], 17);
      EXPECT_EQ(out[shift + count], -1);
    }
  }
}

TEST_P(PeakOnLevel, MultiplyAddDoesWhatItCounts) {
  const PeakKernels& kernels = peak_kernels(GetParam());
  // Twelve chains of equal numbers: every lane of every chain holds 0.5 * 0.5 + 0.5 after one round.
  float once[kPeakSeeds], many[kPeakSeeds];
  std::fill(std::begin(once), std::end(once), 0.5f);
  std::fill(std::begin(many), std::end(many), 0.5f);
  const int64_t unit = kernels.multiply_add(1, once);
  EXPECT_EQ(once[0], 0.75f * static_cast<float>(unit / 2));
  EXPECT_EQ(kernels.multiply_add(10, many), 10 * unit);
}

// A chain that the compiler merged with another would not show its own start in the sum.
TEST_P(PeakOnLevel, EveryChainIsComputed) {
  const PeakKernels& kernels = peak_kernels(GetParam());
  float plain[kPeakSeeds] = {};
  plain[1] = 0.5f;
  const int64_t chains_and_lanes = kernels.multiply_add(1, plain) / 2;
  double sum = 0;
  int64_t chains = 0;
  for (int chain = 0; chain + 2 < kPeakSeeds; ++chain) {
    float seeds[kPeakSeeds] = {};
    seeds[1] = 0.5f;
    seeds[2 + chain] = 2;
    kernels.multiply_add(1, seeds);
    sum += seeds[0];
    chains += seeds[0] != 0;
  }
  EXPECT_EQ(sum, static_cast<double>(chains_and_lanes));
  EXPECT_EQ(chains, GetParam() == Level::scalar ? 1 : 12);
}

INSTANTIATE_TEST_SUITE_P(Levels, PeakOnLevel,
                         testing::ValuesIn(available_levels().begin(), available_levels().end()),
                         [](const auto& level) { return std::string(level_name(level.param)); });

TEST(MeasureFma, FindsAPositiveRate) {
  set_num_threads(1);
  EXPECT_GT(measure_fma_gflops(), 0.1);
  set_num_threads(0);
}

}  // namespace
}  // namespace fovea::kernels
