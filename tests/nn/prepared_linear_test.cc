#include "nn/prepared_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "nn/random_tensor.h"

namespace fovea::nn {
namespace {

struct Case {
  int64_t in, out;
  bool bias, relu;
};

class PreparedLinearTest : public ::testing::TestWithParam<Compute> {};

TEST_P(PreparedLinearTest, IsTheLayerForAnyNumberOfRows) {
  for (const Case& c : {Case{5, 3, true, true}, {64, 100, false, false}, {130, 517, true, true}}) {
    const Tensor weight = normal({c.out, c.in}, 1), bias = c.bias ? normal({c.out}, 2) : Tensor();
    const PreparedLinear layer(weight, bias, GetParam());
    for (const int64_t rows : {0, 1, 7, 48, 49, 101}) {
      const Tensor x = normal({rows, c.in}, 3);
      const Tensor y = layer(x, c.relu ? kernels::Epilogue::relu : kernels::Epilogue::none);
      ASSERT_EQ(y.shape(), Shape({rows, c.out}));
      // Weights and activations of 8 bits are off by half of a 127th of their largest, some 4 here.
      const double each = GetParam() == Compute::float32 ? 1e-6 : 0.012;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < c.out; ++j) {
          double want = c.bias ? bias.data()[j] : 0;
          for (int64_t p = 0; p < c.in; ++p)
            want += double{x.data()[i * c.in + p]} * double{weight.data()[j * c.in + p]};
          if (c.relu) want = std::max(want, 0.0);
          ASSERT_NEAR(y.data()[i * c.out + j], want, each * std::sqrt(double(c.in)) * 4)
              << rows << " " << i << " " << j;
        }
    }
  }
}

TEST_P(PreparedLinearTest, ARowGivesTheSameBytesAloneInABatchAndOnAnyThreadCount) {
  constexpr int64_t kIn = 300, kOut = 1033, kRows = 101;
  const PreparedLinear layer(normal({kOut, kIn}, 1), normal({kOut}, 2), GetParam());
  const Tensor x = normal({kRows, kIn}, 3);
  const Tensor whole = layer(x, kernels::Epilogue::gelu);
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const Tensor again = layer(x, kernels::Epilogue::gelu);
    EXPECT_EQ(std::memcmp(again.data(), whole.data(), sizeof(float) * kRows * kOut), 0);
    for (int64_t i = 0; i < kRows; i += 9) {
      const Tensor row = layer(x.narrow(0, i, 1), kernels::Epilogue::gelu);
      ASSERT_EQ(std::memcmp(row.data(), whole.data() + i * kOut, sizeof(float) * kOut), 0) << "row " << i;
    }
  }
  set_num_threads(0);
}

INSTANTIATE_TEST_SUITE_P(Computes, PreparedLinearTest, ::testing::Values(Compute::float32, Compute::int8),
                         [](const auto& chosen) {
                           return chosen.param == Compute::int8 ? "int8" : "float32";
                         });

}  // namespace
}  // namespace fovea::nn
