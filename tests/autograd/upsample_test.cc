// Bilinear resize and transposed convolution: gradients against differences, everything against PyTorch's own values
// (tests/golden/make_conv.py), the resize kernel against its reference.
#include "autograd/ops_upsample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/gradient_check.h"
#include "base/error_of.h"
#include "base/parallel.h"
#include "io/safetensors.h"
#include "kernels/conv/resize.h"

namespace fovea {
namespace {

using testing::check_gradients;
using ::testing::HasSubstr;
using testing::random_tensor;
using Inputs = std::span<const Var>;

TEST(Resize2dGradient, MatchesDifferences) {
  for (const Size2d size : {Size2d(1), Size2d(3, 7), Size2d(4, 5), Size2d(9, 2), Size2d(8, 10)})
    check_gradients([&](Inputs in) { return resize2d(in[0], size); }, {random_tensor({2, 4, 5, 3}, 1)});
}

TEST(ConvTranspose2dGradient, MatchesDifferences) {
  struct Case {
    Shape image, weight;
    int64_t filters;
    ConvTranspose2dOptions options;
  };
  const Case cases[] = {{{2, 3, 4, 3}, {3, 2, 3, 3}, 2, {.padding = 1}},
                        {{1, 3, 3, 2}, {2, 3, 4, 4}, 3, {.stride = 2, .padding = 1}},
                        {{1, 2, 3, 4},
                         {4, 1, 3, 2},
                         2,
                         {.stride = {3, 2}, .output_padding = {2, 1}, .dilation = {1, 2}, .groups = 2}},
                        {{2, 2, 2, 3}, {3, 4, 1, 1}, 4, {.stride = 3}}};
  for (const Case& c : cases)
    check_gradients([&](Inputs in) { return conv_transpose2d(in[0], in[1], in[2], c.options); },
                    {random_tensor(c.image, 1), random_tensor(c.weight, 2), random_tensor({c.filters}, 3)});
}

void expect_near(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const auto a = got.to_vector(), b = wanted.to_vector();
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 2e-5 * (1 + std::abs(b[i]))) << what << " " << i;
}

TEST(ConvTranspose2d, EqualsPyTorch) {
  const SafetensorsFile file(FOVEA_GOLDEN "/conv.safetensors");
  const std::pair<const char*, ConvTranspose2dOptions> cases[] = {
      {"transposed.plain", {.padding = 1}},
      {"transposed.double", {.stride = 2, .padding = 1}},
      {"transposed.uneven", {.stride = {3, 2}, .output_padding = 1, .dilation = {1, 2}, .groups = 2}}};
  for (const auto& [name, options] : cases) {
    const std::string prefix = std::string(name) + ".";
    const Var x(file->tensor(prefix + "x"), true), weight(file->tensor(prefix + "weight"), true);
    const bool with_bias = file->contains(prefix + "bias");
    const Var bias = with_bias ? Var(file->tensor(prefix + "bias"), true) : Var();
    const Var y = conv_transpose2d(x, weight, bias, options);
    expect_near(y.value(), file->tensor(prefix + "y"), prefix + "y");
    y.backward(file->tensor(prefix + "grad"));
    expect_near(x.grad(), file->tensor(prefix + "dx"), prefix + "dx");
    expect_near(weight.grad(), file->tensor(prefix + "d_weight"), prefix + "d_weight");
    if (with_bias) expect_near(bias.grad(), file->tensor(prefix + "d_bias"), prefix + "d_bias");
  }
}

TEST(Resize2d, EqualsPyTorch) {
  const SafetensorsFile file(FOVEA_GOLDEN "/conv.safetensors");
  for (const std::string name : {"resize.larger.", "resize.smaller.", "resize.double."}) {
    const Var x(file->tensor(name + "x"), true);
    const Tensor wanted = file->tensor(name + "y");
    const Var y = resize2d(x, {wanted.size(1), wanted.size(2)});
    expect_near(y.value(), wanted, name + "y");
    y.backward(file->tensor(name + "grad"));
    expect_near(x.grad(), file->tensor(name + "dx"), name + "dx");
  }
}

TEST(ResizeKernel, EqualsTheReferenceAndDoesNotDependOnThreads) {
  for (const int64_t images : {0, 1, 3})
    for (const int64_t channels : {1, 5, 17})
      for (const auto& [from, to] : {std::pair<int64_t, int64_t>{1, 4}, std::pair<int64_t, int64_t>{7, 3},
                                     std::pair<int64_t, int64_t>{6, 13}}) {
        const kernels::ResizeShape shape{images, from, from + 1, channels, to, to + 2};
        const Tensor x = random_tensor({images, from, from + 1, channels}, 1),
                     dy = random_tensor({images, to, to + 2, channels}, 2);
        const Tensor wanted_y(dy.shape()), wanted_dx(x.shape());
        kernels::scalar::resize_forward(shape, x.data(), wanted_y.data());
        kernels::scalar::resize_backward(shape, dy.data(), wanted_dx.data());
        std::vector<std::vector<float>> bits;
        for (const int threads : {1, 3}) {
          set_num_threads(threads);
          const Tensor y(dy.shape()), dx(x.shape());
          kernels::resize_forward(shape, x.data(), y.data());
          kernels::resize_backward(shape, dy.data(), dx.data());
          expect_near(y, wanted_y, "forward");
          expect_near(dx, wanted_dx, "backward");
          bits.push_back(y.to_vector());
          bits.push_back(dx.to_vector());
        }
        set_num_threads(0);
        EXPECT_EQ(bits[0], bits[2]);
        EXPECT_EQ(bits[1], bits[3]);
      }
}

TEST(ConvTranspose2d, WhatDoesNotFitIsRefusedWithWhatWasWanted) {
  const Var x(Tensor::zeros({1, 4, 4, 6})), weight(Tensor::zeros({6, 2, 3, 3}));
  EXPECT_THAT(error_of([&] {
                conv_transpose2d(x, Var(Tensor::zeros({4, 2, 3, 3})));
              }),
              HasSubstr("wanted [channels, filters / groups, height, width]"));
  EXPECT_THAT(error_of([&] { conv_transpose2d(x, weight, Var(Tensor::zeros({3}))); }),
              HasSubstr("wanted [2]"));
  EXPECT_THAT(error_of([&] { conv_transpose2d(x, weight, {}, {.output_padding = 1}); }),
              HasSubstr("less than the stride"));
  EXPECT_THAT(error_of([&] { conv_transpose2d(x, weight, {}, {.padding = 3}); }), HasSubstr("pad less"));
  EXPECT_THAT(error_of([&] { resize2d(x, 0); }), HasSubstr("got a size of 0 x 0"));
  EXPECT_THAT(error_of([&] { resize2d(Var(Tensor::zeros({4, 4})), 2); }), HasSubstr("[images, height"));
}

}  // namespace
}  // namespace fovea
