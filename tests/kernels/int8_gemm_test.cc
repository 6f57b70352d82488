#include "kernels/gemm/int8_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "kernels/kernel_check.h"

namespace fovea::kernels {
namespace {

// The ways to multiply that this CPU has at a level.
std::vector<Int8Kernels> ways(Level level) {
  std::vector<Int8Kernels> found{int8_ways(level).words};
  if (level == Level::scalar || has_dot_products(level)) found.push_back(int8_ways(level).bytes);
  return found;
}

// Activations as a kernel wants them; a row's zeros[i] stands for 0.
std::vector<int32_t> stored(const Int8Kernels& kernels, int64_t m, int64_t k,
                            const std::vector<int32_t>& values, const std::vector<int32_t>& zeros) {
  std::vector<int32_t> result(static_cast<size_t>(m * kernels.groups(k)), 0);
  const int64_t width = 4 / kernels.together;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      // Little-endian: the low bytes come first.
      const int32_t value = values[static_cast<size_t>(i * k + p)] + zeros[static_cast<size_t>(i)];
      std::memcpy(reinterpret_cast<char*>(&result[static_cast<size_t>(i * kernels.groups(k))]) + p * width,
                  &value, static_cast<size_t>(width));
    }
  return result;
}

TEST(Int8Gemm, EveryWaySumsTheExactIntegers) {
  Rng rng(1);
  for (const Level level : available_levels()) {
    for (const Int8Kernels& kernels : ways(level)) {
      for (const int64_t m : {1, 2, 5, 6, 7, 12, 13, 32}) {
        for (const int64_t n : {1, 15, 16, 33, 100}) {
          for (const int64_t k : {1, 2, 7, 64, 129, 500}) {
            std::vector<int8_t> w(static_cast<size_t>(n * k));
            for (int8_t& x : w) x = static_cast<int8_t>(static_cast<int>(rng.below(255)) - 127);
            // Of bytes, each row has a zero of its own among its 256 values.
            const bool bytes = kernels.together == 4;
            const int32_t limit = int8_activation_limit(kernels.together, k);
            std::vector<int32_t> a, zeros;
            for (int64_t i = 0; i < m; ++i) {
              zeros.push_back(bytes ? static_cast<int32_t>(rng.below(256)) : 0);
              for (int64_t p = 0; p < k; ++p)
                a.push_back(bytes ? static_cast<int32_t>(rng.below(256)) - zeros.back()
                                  : static_cast<int32_t>(rng.below(static_cast<uint64_t>(2 * limit + 1))) -
                                        limit);
            }
            std::vector<int8_t> packed(static_cast<size_t>(packed_int8_size(n, k, kernels)));
            kernels.pack(n, k, w.data(), packed.data());
            // A power of two scales without rounding; the float of a sum rounds as the hardware does.
            const std::vector<float> a_scales(static_cast<size_t>(m), 0.5f),
                scales(static_cast<size_t>(n), 0.25f);
            const std::vector<int32_t> q = stored(kernels, m, k, a, zeros);
            testing::Guarded c(m * n);
            const int64_t half = n / 2 / kernels.panel_columns * kernels.panel_columns;
            for (const auto& [begin, end] : {std::pair{int64_t{0}, half}, std::pair{half, n}})
              kernels.multiply({.m = m,
                                .n = n,
                                .k = k,
                                .column_begin = begin,
                                .column_end = end,
                                .a = q.data(),
                                .a_scales = a_scales.data(),
                                .a_zeros = zeros.data(),
                                .packed = packed.data(),
                                .scales = scales.data(),
                                .c = c.data(),
                                .ldc = n});
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j) {
                int64_t sum = 0;
                for (int64_t p = 0; p < k; ++p)
                  sum += int64_t{a[static_cast<size_t>(i * k + p)]} * w[static_cast<size_t>(j * k + p)];
                ASSERT_EQ(c[i * n + j], 0.125f * static_cast<float>(sum)) << m << " " << n << " " << k;
              }
            ASSERT_TRUE(c.guards_intact());
          }
        }
      }
    }
  }
}

TEST(Int8Gemm, TheLargestSumsDoNotOverflow) {
  for (const int64_t k : {2048, 8192, 20000, 140000}) {
    for (const Level level : available_levels()) {
      for (const Int8Kernels& kernels : ways(level)) {
        const int32_t limit = int8_activation_limit(kernels.together, k);
        EXPECT_LE(int64_t{limit} * 127 * k, std::numeric_limits<int32_t>::max());
        EXPECT_GE(limit, k > 100000  ? 100
                         : k > 66000 ? 127
                                     : 255)
            << "no worse than activations of eight bits";
        const std::vector<int8_t> w(static_cast<size_t>(k), -127);
        std::vector<int8_t> packed(static_cast<size_t>(packed_int8_size(1, k, kernels)));
        kernels.pack(1, k, w.data(), packed.data());
        for (const int32_t sign : {1, -1}) {
          const std::vector<int32_t> zero{kernels.together == 4 && sign < 0 ? limit : 0};
          const auto q =
              stored(kernels, 1, k, std::vector<int32_t>(static_cast<size_t>(k), sign * limit), zero);
          const float one = 1;
          float c = 0;
          kernels.multiply({.m = 1,
                            .n = 1,
                            .k = k,
                            .column_begin = 0,
                            .column_end = 1,
                            .a = q.data(),
                            .a_scales = &one,
                            .a_zeros = zero.data(),
                            .packed = packed.data(),
                            .scales = &one,
                            .c = &c,
                            .ldc = 1});
          EXPECT_EQ(c, static_cast<float>(-sign * int64_t{limit} * 127 * k));
        }
      }
    }
  }
}

TEST(Int8Gemm, RowsAreQuantisedByWhatTheyReachOver) {
  for (const Level level : testing::vector_levels()) {
    // Bytes are quantised without the instruction that multiplies them: also where the CPU lacks it.
    std::vector<Int8Kernels> all{int8_ways(level).words};
    if (int8_ways(level).bytes.multiply != nullptr) all.push_back(int8_ways(level).bytes);
    for (const Int8Kernels& kernels : all) {
      const Int8Kernels& plain =
          kernels.together == 2 ? int8_ways(Level::scalar).words : int8_ways(Level::scalar).bytes;
      // The last size has fewer steps than eight bits hold.
      for (const int64_t k : {1, 7, 8, 33, 64, 130, 70001}) {
        std::vector<float> x = {};
        Rng rng(2);
        // A row of zeros, one of both signs, and one with few values below 0, as after a gelu.
        for (int64_t i = 0; i < 3 * k; ++i)
          x.push_back(i < k ? 0 : i < 2 * k ? rng.normal() : std::max(-0.17f, rng.normal()));
        std::vector<int32_t> found(static_cast<size_t>(3 * kernels.groups(k)), 99), wanted = found;
        std::vector<float> scales(3), wanted_scales(3);
        std::vector<int32_t> zeros(3), wanted_zeros(3);
        kernels.quantize_rows(3, k, x.data(), found.data(), scales.data(), zeros.data());
        plain.quantize_rows(3, k, x.data(), wanted.data(), wanted_scales.data(), wanted_zeros.data());
        EXPECT_EQ(found, wanted);
        EXPECT_EQ(scales, wanted_scales);
        EXPECT_EQ(zeros, wanted_zeros);
        const auto width = static_cast<size_t>(4 / kernels.together);
        for (int64_t i = k; i < 3 * k; ++i) {
          const int64_t row = i / k;
          int32_t value = 0;
          std::memcpy(&value,
                      reinterpret_cast<const char*>(&found[static_cast<size_t>(row * kernels.groups(k))]) +
                          static_cast<size_t>(i % k) * width,
                      width);
          if (width == 2) value = static_cast<int16_t>(value);
          const float said =
              static_cast<float>(value - zeros[static_cast<size_t>(row)]) * scales[static_cast<size_t>(row)];
          EXPECT_LE(std::fabs(said - x[static_cast<size_t>(i)]), 0.501f * scales[static_cast<size_t>(row)]);
        }
        EXPECT_EQ(scales[0], 0);
        for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
          x[static_cast<size_t>(k)] = bad;
          kernels.quantize_rows(3, k, x.data(), found.data(), scales.data(), zeros.data());
          EXPECT_TRUE(std::isnan(scales[1]));
          EXPECT_EQ(scales[2], wanted_scales[2]);
        }
        // Finite values whose sum is not.
        for (int64_t i = k; i < 2 * k; ++i) x[static_cast<size_t>(i)] = i % 3 == 0 ? 1e38f : 3e38f;
        kernels.quantize_rows(3, k, x.data(), found.data(), scales.data(), zeros.data());
        plain.quantize_rows(3, k, x.data(), wanted.data(), wanted_scales.data(), wanted_zeros.data());
        EXPECT_EQ(found, wanted);
        EXPECT_EQ(scales, wanted_scales);
      }
    }
  }
}

TEST(QuantizeInt8, WhatItSaysIsQuantisedToItself) {
  Rng rng(3);
  constexpr int64_t kRows = 200, kColumns = 31;
  std::vector<float> w(kRows * kColumns);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t p = 0; p < kColumns; ++p)
      w[static_cast<size_t>(i * kColumns + p)] =
          i == 0 ? 0 : std::ldexp(rng.normal(), static_cast<int>(i % 40) - 20);
  std::vector<int8_t> q(w.size()), again(w.size());
  std::vector<float> scales(kRows), scales_again(kRows), said(w.size());
  ASSERT_TRUE(quantize_int8(kRows, kColumns, w.data(), q.data(), scales.data()));
  for (size_t i = 0; i < w.size(); ++i) {
    const float scale = scales[i / kColumns];
    said[i] = static_cast<float>(q[i]) * scale;
    EXPECT_EQ(double{said[i]}, static_cast<double>(q[i]) * double{scale}) << "exact";
    EXPECT_LE(std::fabs(said[i] - w[i]), 0.501f * scale);
  }
  ASSERT_TRUE(quantize_int8(kRows, kColumns, said.data(), again.data(), scales_again.data()));
  EXPECT_EQ(again, q);
  EXPECT_EQ(scales_again, scales);
  w[77] = std::nanf("");
  EXPECT_FALSE(quantize_int8(kRows, kColumns, w.data(), q.data(), scales.data()));
}

}  // namespace
}  // namespace fovea::kernels
