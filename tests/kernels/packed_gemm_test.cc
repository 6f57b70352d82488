#include "kernels/gemm/packed_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.h"

namespace fovea::kernels {
namespace {

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] =
        static_cast<float>(philox(seed, static_cast<uint64_t>(i), 0)[0]) * 0x1p-31f - 1;
  return values;
}

struct Case {
  int64_t m, n, k;
  bool transpose, bias, accumulate;
};

// What the product should be, in double precision.
std::vector<double> expected(const Case& x, const std::vector<float>& a, const std::vector<float>& b,
                             const std::vector<float>& bias, const std::vector<float>& c, int64_t ldc) {
  std::vector<double> result(static_cast<size_t>(x.m * x.n));
  for (int64_t i = 0; i < x.m; ++i)
    for (int64_t j = 0; j < x.n; ++j) {
      double sum = x.accumulate ? c[i * ldc + j] : x.bias ? bias[j] : 0;
      for (int64_t p = 0; p < x.k; ++p)
        sum += double(a[i * (x.k + 3) + p]) * b[x.transpose ? j * (x.k + 1) + p : p * (x.n + 2) + j];
      result[i * x.n + j] = sum;
    }
  return result;
}

void check(const Case& x, Level level) {
  const PackedGemmKernels& kernels = packed_gemm_kernels(level);
  const int64_t lda = x.k + 3, ldb = x.transpose ? x.k + 1 : x.n + 2, ldc = x.n + 5;
  const auto a = random_floats(x.m * lda, 1), b = random_floats((x.transpose ? x.n : x.k) * ldb, 2);
  const auto bias = random_floats(x.n, 3), before = random_floats(x.m * ldc, 4);
  std::vector<float> packed(static_cast<size_t>(packed_size(x.n, x.k, level)));
  kernels.pack({.transpose = x.transpose, .n = x.n, .k = x.k, .b = b.data(), .ldb = ldb}, packed.data());
  std::vector<float> c = before;
  kernels.multiply({.m = x.m,
                    .n = x.n,
                    .k = x.k,
                    .column_begin = 0,
                    .column_end = x.n,
                    .a = a.data(),
                    .lda = lda,
                    .packed = packed.data(),
                    .bias = x.bias ? bias.data() : nullptr,
                    .accumulate = x.accumulate,
                    .c = c.data(),
                    .ldc = ldc});
  const auto want = expected(x, a, b, bias, before, ldc);
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j)
      ASSERT_NEAR(c[i * ldc + j], want[i * x.n + j], 2e-6 * std::sqrt(1.0 + double(x.k)))
          << level_name(level) << " m " << x.m << " n " << x.n << " k " << x.k << " at " << i << ", " << j;
    for (int64_t j = x.n; j < ldc; ++j)
      ASSERT_EQ(c[i * ldc + j], before[i * ldc + j]) << "wrote past column n";
  }
}

TEST(PackedGemm, EqualsTheProductOnEveryLevelForOddShapes) {
  for (const Level level : available_levels())
    for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 11, 13, 25})
      for (const int64_t n : {1, 7, 16, 33, 130})
        for (const int64_t k : {1, 3, 64, 257, 600})
          check({m, n, k, (m + n) % 2 == 0, k % 2 == 1, m % 3 == 0}, level);
}

TEST(PackedGemm, EmptySizesAreRight) {
  for (const Level level : available_levels()) {
    check({3, 17, 0, true, true, false}, level);
    check({3, 17, 0, true, false, true}, level);
    check({3, 17, 0, false, false, false}, level);
    check({0, 5, 4, true, false, false}, level);
    check({5, 0, 4, true, false, false}, level);
  }
}

TEST(PackedGemm, ARowGivesTheSameBytesAloneInABatchAndHoweverColumnsAreCut) {
  const int64_t n = 517, k = 700, rows = 29;
  const auto a = random_floats(rows * k, 1), b = random_floats(n * k, 2);
  const PackedGemmKernels& kernels = packed_gemm_kernels();
  std::vector<float> packed(static_cast<size_t>(packed_size(n, k)));
  kernels.pack({.transpose = true, .n = n, .k = k, .b = b.data(), .ldb = k}, packed.data());
  const auto product = [&](int64_t first, int64_t count, int64_t part) {
    std::vector<float> c(static_cast<size_t>(count * n));
    for (int64_t column = 0; column < n; column += part)
      kernels.multiply({.m = count,
                        .n = n,
                        .k = k,
                        .column_begin = column,
                        .column_end = std::min(n, column + part),
                        .a = a.data() + first * k,
                        .lda = k,
                        .packed = packed.data(),
                        .c = c.data(),
                        .ldc = n});
    return c;
  };
  const auto whole = product(0, rows, n);
  for (const int64_t panels : {1, 3}) {
    const int64_t part = panels * kernels.panel_columns;
    for (int64_t i = 0; i < rows; ++i) {
      const auto row = product(i, 1, part);
      ASSERT_EQ(std::memcmp(row.data(), whole.data() + i * n, sizeof(float) * n), 0) << "row " << i;
    }
    ASSERT_EQ(product(0, rows, part), whole);
  }
}

TEST(PackedGemm, SingleElementsAreToTheBitThoseOfTheProduct) {
  for (const Level level : available_levels()) {
    const PackedGemmKernels& kernels = packed_gemm_kernels(level);
    for (const int64_t k : {1, 7, 255, 256, 257, 512, 513, 1100}) {
      for (const bool biased : {false, true}) {
        constexpr int64_t kColumns = 75, kRows = 3;
        const auto a = random_floats(kRows * k, 1), b = random_floats(kColumns * k, 2);
        const auto bias = random_floats(kColumns, 3);
        std::vector<float> packed(static_cast<size_t>(packed_size(kColumns, k, level))),
            c(static_cast<size_t>(kRows * kColumns));
        kernels.pack({.transpose = true, .n = kColumns, .k = k, .b = b.data(), .ldb = k}, packed.data());
        kernels.multiply({.m = kRows,
                          .n = kColumns,
                          .k = k,
                          .column_begin = 0,
                          .column_end = kColumns,
                          .a = a.data(),
                          .lda = k,
                          .packed = packed.data(),
                          .bias = biased ? bias.data() : nullptr,
                          .c = c.data(),
                          .ldc = kColumns});
        const std::vector<int32_t> columns{0, 3, 3, 16, 31, 32, 40, 63, 64, 74};
        std::vector<float> got(columns.size());
        kernels.elements({.k = k,
                          .a = a.data() + k,
                          .b = b.data(),
                          .bias = biased ? bias.data() : nullptr,
                          .count = static_cast<int64_t>(columns.size()),
                          .columns = columns.data(),
                          .c = got.data()});
        for (size_t i = 0; i < columns.size(); ++i)
          EXPECT_EQ(got[i], c[static_cast<size_t>(kColumns + columns[i])]) << level_name(level) << " k " << k;
      }
    }
  }
}

}  // namespace
}  // namespace fovea::kernels
