#include "kernels/vector/topk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

struct Found {
  TopKResult result;
  std::vector<float> values;
  std::vector<int32_t> columns;
};

Found run(const std::vector<float>& x, int64_t wanted, int32_t skipped, Level level) {
  const auto count = static_cast<int64_t>(x.size());
  std::vector<float> largest(static_cast<size_t>(top_blocks(count))), sums(largest),
      values(static_cast<size_t>(wanted), -1);
  // In two parts, as two threads would.
  const int64_t part = count / 2 / kTopBlock * kTopBlock;
  const TopKKernels& kernels = top_k_kernels(level);
  kernels.summarise(part, x.data(), largest.data(), sums.data());
  kernels.summarise(count - part, x.data() + part, largest.data() + part / kTopBlock,
                    sums.data() + part / kTopBlock);
  std::vector<int32_t> columns(static_cast<size_t>(wanted), -1);
  const TopKResult result = kernels.top_k({.count = count,
                                           .x = x.data(),
                                           .block_largest = largest.data(),
                                           .block_sums = sums.data(),
                                           .wanted = wanted,
                                           .skipped = skipped,
                                           .values = values.data(),
                                           .columns = columns.data()});
  values.resize(static_cast<size_t>(result.found));
  columns.resize(static_cast<size_t>(result.found));
  return {result, values, columns};
}

TEST(TopK, EveryLevelChoosesWhatTheReferenceChooses) {
  Rng rng(1);
  for (const Level level : testing::vector_levels()) {
    for (const int64_t count : {1, 2, 7, 8, 9, 127, 128, 129, 500, 1024, 1031, 5003}) {
      for (const bool coarse : {false, true}) {
        std::vector<float> x(static_cast<size_t>(count));
        // Coarse values meet often: of equal ones the first column is chosen.
        for (float& value : x) value = coarse ? std::round(2 * rng.normal()) : 5 * rng.normal();
        for (const int64_t wanted : {1, 2, 8, 10, 64}) {
          for (const int32_t skipped : {-1, 0, 2, static_cast<int32_t>(count - 1)}) {
            const Found found = run(x, wanted, skipped, level),
                        expected = run(x, wanted, skipped, Level::scalar);
            ASSERT_EQ(found.columns, expected.columns) << count << " " << wanted << " " << skipped;
            ASSERT_EQ(found.values, expected.values);
            ASSERT_EQ(found.result.largest, expected.result.largest);
            ASSERT_NEAR(found.result.sum, expected.result.sum, 1e-5 * expected.result.sum);
          }
        }
      }
    }
  }
}

TEST(TopK, TheBestMayAllStandInOneBlock) {
  for (const Level level : testing::vector_levels()) {
    std::vector<float> x(1000, -3);
    for (int i = 0; i < 20; ++i) x[static_cast<size_t>(300 + i)] = static_cast<float>(i);
    const Found found = run(x, 5, 319, level);
    EXPECT_EQ(found.columns, (std::vector<int32_t>{318, 317, 316, 315, 314}));
  }
}

TEST(TopK, HiddenColumnsCountNothingAndNaNIsTold) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Level level : testing::vector_levels()) {
    std::vector<float> x(300, -kInfinity);
    x[17] = 2;
    x[290] = 1;
    const Found found = run(x, 2, -1, level);
    EXPECT_EQ(found.columns, (std::vector<int32_t>{17, 290}));
    EXPECT_NEAR(found.result.sum, 1 + std::exp(-1.0f), 1e-6);
    for (const float bad : {std::nanf(""), kInfinity}) {
      for (const size_t place : {size_t{0}, size_t{130}, size_t{299}}) {
        std::vector<float> y(300, 0.5f);
        y[place] = bad;
        EXPECT_FALSE(std::isfinite(run(y, 3, -1, level).result.sum)) << bad << " at " << place;
      }
    }
    EXPECT_FALSE(std::isfinite(run(std::vector<float>(9, -kInfinity), 1, -1, level).result.sum));
  }
}

std::vector<int32_t> candidates(Uncertain row, Level level) {
  std::vector<int32_t> columns(static_cast<size_t>(row.count), -1);
  row.columns = columns.data();
  columns.resize(static_cast<size_t>(top_k_kernels(level).candidates(row)));
  return columns;
}

TEST(TopK, CandidatesAreTheColumnsThatMayBeLargest) {
  Rng rng(3);
  for (const int64_t count : {1, 2, 15, 16, 17, 100, 1003}) {
    std::vector<float> x(static_cast<size_t>(count)), errors(x), norms(x);
    for (size_t j = 0; j < x.size(); ++j) {
      x[j] = rng.normal();
      errors[j] = rng.uniform();
      norms[j] = rng.uniform();
    }
    for (const int32_t skipped : {-1, 0, static_cast<int32_t>(count / 2), static_cast<int32_t>(count - 1)}) {
      for (const float size : {0.0f, 0.01f, 0.3f}) {
        const Uncertain row{.count = count,
                            .x = x.data(),
                            .errors = errors.data(),
                            .norms = norms.data(),
                            .length = size,
                            .error = size / 2,
                            .slack = size / 100,
                            .skipped = skipped};
        const auto margin = [&](size_t j) { return size * (errors[j] + norms[j] / 2 + 0.01f); };
        std::vector<int32_t> wanted;
        for (size_t j = 0; j < x.size(); ++j) {
          bool may = static_cast<int32_t>(j) != skipped;
          for (size_t other = 0; other < x.size(); ++other)
            if (static_cast<int32_t>(other) != skipped && x[other] - margin(other) > x[j] + margin(j) + 1e-6f)
              may = false;
          if (may) wanted.push_back(static_cast<int32_t>(j));
        }
        for (const Level level : available_levels()) EXPECT_EQ(candidates(row, level), wanted) << count;
      }
    }
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      std::vector<float> broken = x;
      broken.back() = bad;
      for (const Level level : available_levels())
        EXPECT_TRUE(candidates({.count = count,
                                .x = broken.data(),
                                .errors = errors.data(),
                                .norms = norms.data(),
                                .length = 1},
                               level)
                        .empty());
    }
  }
}

}  // namespace
}  // namespace fovea::kernels
