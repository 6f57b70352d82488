#include "kernels/peak.h"

#include <gtest/gtest.h>

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
  float once[2] = {0.5f, 0.5f};
  const int64_t unit = kernels.multiply_add(1, once);
  // Every lane of every chain holds 0.5 * 0.5 + 0.5 after one round.
  EXPECT_EQ(once[0], 0.75f * static_cast<float>(unit / 2));
  float many[2] = {0.5f, 0.5f};
  EXPECT_EQ(kernels.multiply_add(10, many), 10 * unit);
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
