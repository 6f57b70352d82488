#include "infer/output_layer.h"

#include <gtest/gtest.h>

#include <cstring>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/parallel.h"
#include "nn/random_tensor.h"

namespace fovea {
namespace {

std::vector<int32_t> largest(const Tensor& logits, const std::vector<int32_t>& skipped) {
  std::vector<int32_t> tokens;
  for (int64_t r = 0; r < logits.size(0); ++r) {
    int64_t best = -1;
    const float* row = logits.data() + r * logits.size(1);
    for (int64_t j = 0; j < logits.size(1); ++j)
      if (j != skipped[static_cast<size_t>(r)] && (best < 0 || row[j] > row[best])) best = j;
    tokens.push_back(static_cast<int32_t>(best));
  }
  return tokens;
}

class OutputLayerTest : public ::testing::TestWithParam<Compute> {};

TEST_P(OutputLayerTest, BestIsTheLargestLogit) {
  for (const int64_t in : {1, 40, 128, 600}) {
    for (const bool biased : {false, true}) {
      constexpr int64_t kVocabulary = 1500, kRows = 37;
      Tensor weight = normal({kVocabulary, in}, 1);
      // Rare words have short rows, and some rows differ in their last bits or not at all.
      for (int64_t j = 0; j < kVocabulary; ++j)
        for (int64_t p = 0; p < in; ++p) {
          float& w = weight.data()[j * in + p];
          w *= j % 3 == 0 ? 0.2f : 1.0f;
          if (j >= 1000) w = std::nextafter(weight.data()[(j - 1000) * in + p], j % 2 == 0 ? 9.0f : -9.0f);
          if (j >= 1400) w = weight.data()[(j - 1400) * in + p];
        }
      // A bias far larger than the products, the same for rows that are alike.
      Tensor bias = normal({kVocabulary}, 2);
      for (int64_t j = 0; j < kVocabulary; ++j)
        bias.data()[j] = j < 1000 ? 1000 + 10 * bias.data()[j] : bias.data()[j % 1000 % 400];
      const OutputLayer layer(weight, biased ? bias : Tensor(), GetParam());
      Tensor x = normal({kRows, in}, 3);
      for (int64_t p = 0; p < in; ++p) {
        x.data()[p] = 0;
        x.data()[in + p] *= 1e-35f;
        x.data()[2 * in + p] *= 1e6f;
        x.data()[3 * in + p] = p == 0 ? 100.0f : 1e-3f;
      }
      const Tensor logits = layer.logits(x).values;
      std::vector<int32_t> skipped(kRows, -1);
      const std::vector<int32_t> first = largest(logits, skipped);
      EXPECT_EQ(layer.best(x, skipped), first) << in;
      for (size_t r = 0; r < skipped.size(); r += 2) skipped[r] = first[r];  // then the second
      EXPECT_EQ(layer.best(x, skipped), largest(logits, skipped)) << in;
    }
  }
}

TEST_P(OutputLayerTest, WhatIsNotFiniteIsTold) {
  const OutputLayer layer(normal({300, 16}, 1), {}, GetParam());
  const std::vector<int32_t> skipped(3, -1);
  for (const float bad : {std::nanf(""), INFINITY}) {
    Tensor x = normal({3, 16}, 2);
    x.data()[20] = bad;
    EXPECT_THROW(layer.best(x, skipped), Error);
  }
}

TEST_P(OutputLayerTest, LogitsAreTheLayerWithTheSummaryOfEveryBlock) {
  constexpr int64_t kIn = 64, kOut = 2600, kRows = 53;
  const Tensor weight = normal({kOut, kIn}, 1), bias = normal({kOut}, 2);
  const OutputLayer layer(weight, bias, GetParam());
  const Tensor x = normal({kRows, kIn}, 3);
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() &&
           std::memcmp(a.data(), b.data(), sizeof(float) * static_cast<size_t>(a.count())) == 0;
  };
  const Logits wanted(nn::PreparedLinear(weight, bias, GetParam())(x));
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const Logits found = layer.logits(x);
    EXPECT_TRUE(same(found.values, wanted.values));
    EXPECT_TRUE(same(found.largest, wanted.largest));
    EXPECT_TRUE(same(found.sums, wanted.sums));
  }
  set_num_threads(0);
}

INSTANTIATE_TEST_SUITE_P(Computes, OutputLayerTest, ::testing::Values(Compute::float32, Compute::int8));

TEST(OutputLayer, DamagedWeightsAreTold) {
  Tensor weight = normal({300, 16}, 1);
  weight.data()[77] = std::nanf("");
  const OutputLayer layer(weight, {}, Compute::float32);
  const std::vector<int32_t> skipped(3, -1);
  EXPECT_THROW(layer.best(normal({3, 16}, 2), skipped), Error);
}

}  // namespace
}  // namespace fovea
