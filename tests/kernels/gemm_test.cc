#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <array>

#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/gemm/packed_gemm.h"

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
  bool transpose_a, transpose_b;
  float alpha, beta;
};

struct Operands {
  std::vector<float> a, b, c;
  Gemm gemm;
  explicit Operands(const Case& x)
      : a(random_floats((x.transpose_a ? x.k : x.m) * ((x.transpose_a ? x.m : x.k) + 1), 1)),
        b(random_floats((x.transpose_b ? x.n : x.k) * ((x.transpose_b ? x.k : x.n) + 2), 2)),
        c(random_floats(x.m * (x.n + 3), 3)) {
    gemm = {.transpose_a = x.transpose_a,
            .transpose_b = x.transpose_b,
            .m = x.m,
            .n = x.n,
            .k = x.k,
            .alpha = x.alpha,
            .a = a.data(),
            .lda = (x.transpose_a ? x.m : x.k) + 1,
            .b = b.data(),
            .ldb = (x.transpose_b ? x.k : x.n) + 2,
            .beta = x.beta,
            .c = c.data(),
            .ldc = x.n + 3};
  }
};

void check(const Case& x, bool packed = false) {
  Operands o(x);
  std::vector<float> b;
  if (packed) {
    b.resize(static_cast<size_t>(packed_size(x.n, x.k)));
    pack_parallel({.transpose = x.transpose_b, .n = x.n, .k = x.k, .b = o.b.data(), .ldb = o.gemm.ldb},
                  b.data());
    o.gemm.packed = b.data();
  }
  const std::vector<float> before = o.c;
  if (x.beta == 0) {  // C is then not read
    for (int64_t i = 0; i < x.m; ++i)
      for (int64_t j = 0; j < x.n; ++j) o.c[i * o.gemm.ldc + j] = std::numeric_limits<float>::quiet_NaN();
  }
  gemm(o.gemm);
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < x.k; ++p)
        sum += double(o.a[x.transpose_a ? p * o.gemm.lda + i : i * o.gemm.lda + p]) *
               o.b[x.transpose_b ? j * o.gemm.ldb + p : p * o.gemm.ldb + j];
      const double want = x.alpha * sum + (x.beta == 0 ? 0 : x.beta * before[i * o.gemm.ldc + j]);
      ASSERT_NEAR(o.c[i * o.gemm.ldc + j], want, 2e-6 * std::sqrt(1.0 + double(x.k)))
          << x.m << " x " << x.n << " x " << x.k << " at " << i << ", " << j;
    }
    for (int64_t j = x.n; j < o.gemm.ldc; ++j) ASSERT_EQ(o.c[i * o.gemm.ldc + j], before[i * o.gemm.ldc + j]);
  }
}

TEST(Gemm, EqualsTheProductInEveryLayout) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                    {3, 7, 5},
                                    {1, 130, 65},
                                    {97, 33, 37},
                                    {101, 67, 600},
                                    {203, 35, 2100},
                                    {200, 150, 40},
                                    {130, 64, 2100},
                                    {5, 9, 17000},
                                    {300, 96, 70},
                                    {300, 20, 1023},
                                    {1023, 20, 300},
                                    {0, 3, 4},
                                    {3, 0, 4},
                                    {3, 4, 0}}) {
        check({m, n, k, ta, tb, 1, 0});
        check({m, n, k, ta, tb, 1, 1});
        check({m, n, k, ta, tb, 0.5f, -2});
      }
}

TEST(Gemm, AddsABiasToEveryRow) {
  for (const bool packed : {false, true})
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{3, 7, 5}, {300, 70, 40}, {40, 64, 2100}, {3, 4, 0}}) {
      const auto bias = random_floats(n, 4);
      Operands plain({m, n, k, false, true, 1, 0}), with({m, n, k, false, true, 1, 0});
      std::vector<float> b(static_cast<size_t>(packed_size(n, k)));
      pack_parallel({.transpose = true, .n = n, .k = k, .b = plain.b.data(), .ldb = plain.gemm.ldb},
                    b.data());
      if (packed) plain.gemm.packed = with.gemm.packed = b.data();
      with.gemm.bias = bias.data();
      gemm(plain.gemm);
      gemm(with.gemm);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          ASSERT_NEAR(with.c[i * with.gemm.ldc + j], plain.c[i * with.gemm.ldc + j] + bias[j], 1e-4)
              << m << " x " << n << " x " << k << " at " << i << ", " << j;
    }
}

TEST(Gemm, TakesAMatrixThatWasPackedBefore) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [m, n, k] :
           {std::array<int64_t, 3>{1, 1, 1}, {3, 7, 5}, {97, 33, 37}, {209, 300, 600}})
        for (const float beta : {0.0f, 1.0f}) check({m, n, k, ta, tb, 1, beta}, true);
}

TEST(Gemm, GivesTheSameBytesForAnyThreadCount) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{517, 300, 700},
                                {96, 40, 3000},
                                {64, 1536, 512},
                                {1, 2000, 300},
                                {2100, 64, 64}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        std::vector<float> first;
        for (const int threads : {1, 2, 3}) {
          set_num_threads(threads);
          Operands o({m, n, k, ta, tb, 1, 1});
          gemm(o.gemm);
          if (threads == 1) first = o.c;
          ASSERT_EQ(o.c, first) << m << " x " << n << " x " << k << " with " << threads << " threads";
        }
      }
  set_num_threads(0);
}

TEST(GemmBatched, EqualsItsProductsOneByOne) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{5, 9, 4}, {100, 40, 50}})
    for (const bool shared_b : {false, true}) {
      const int64_t count = 7;
      const auto a = random_floats(count * m * k, 1), b = random_floats(count * k * n, 2);
      const int64_t stride_b = shared_b ? 0 : k * n;
      std::vector<float> together(static_cast<size_t>(count * m * n)), alone = together;
      Gemm g{.m = m,
             .n = n,
             .k = k,
             .a = a.data(),
             .lda = k,
             .b = b.data(),
             .ldb = n,
             .c = together.data(),
             .ldc = n};
      gemm_batched(g, count, m * k, stride_b, m * n);
      for (int64_t i = 0; i < count; ++i) {
        g.a = a.data() + i * m * k;
        g.b = b.data() + i * stride_b;
        g.c = alone.data() + i * m * n;
        gemm(g);
      }
      EXPECT_EQ(together, alone);
    }
}

}  // namespace
}  // namespace fovea::kernels
