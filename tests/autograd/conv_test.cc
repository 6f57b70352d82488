// Convolution, pooling and batch norm: gradients against differences, everything against PyTorch's own values
// (tests/golden/make_conv.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/gradient_check.h"
#include "autograd/in_place.h"
#include "autograd/ops.h"
#include "base/error_of.h"
#include "io/safetensors.h"

namespace fovea {
namespace {

using testing::check_gradients;
using testing::random_tensor;
using Inputs = std::span<const Var>;

TEST(Conv2dGradient, MatchesDifferences) {
  struct Case {
    Shape image, weight;
    Conv2dOptions options;
  };
  const Case cases[] = {
      {{2, 4, 5, 3}, {4, 3, 3, 3}, {.padding = 1}},
      {{1, 5, 4, 2}, {3, 2, 2, 3}, {.stride = {2, 1}, .padding = {0, 1, 2, 0}}},
      {{1, 5, 5, 2}, {2, 2, 3, 3}, {.padding = 2, .dilation = 2}},
      {{2, 3, 3, 4}, {4, 1, 3, 3}, {.padding = 1, .groups = 4}},
      {{3, 2, 2, 5}, {2, 5, 1, 1}, {}},
      {{1, 1, 1, 1}, {1, 1, 7, 7}, {.padding = 3}},
  };
  for (const Case& c : cases) {
    const auto f = [&](Inputs in) { return conv2d(in[0], in[1], in[2], c.options); };
    check_gradients(f,
                    {random_tensor(c.image, 1), random_tensor(c.weight, 2), random_tensor({c.weight[0]}, 3)});
    check_gradients([&](Inputs in) { return conv2d(in[0], in[1], {}, c.options); },
                    {random_tensor(c.image, 1), random_tensor(c.weight, 2)});
  }
}

TEST(Conv2d, ReadsTransposedImages) {
  const Var x(random_tensor({2, 3, 4, 5}, 1)), weight(random_tensor({2, 3, 3, 3}, 2));
  const Var turned = permute(x, {0, 2, 3, 1});
  EXPECT_EQ(conv2d(turned, weight).value().to_vector(),
            conv2d(Var(turned.value().clone()), weight).value().to_vector());
}

TEST(Pool2dGradient, MatchesDifferences) {
  // Far apart: a step must not change which is largest.
  const Tensor x(Shape{2, 5, 4, 3});
  Rng rng(5);
  std::vector<float> values;
  for (int64_t i = 0; i < x.count(); ++i) values.push_back(static_cast<float>(i) * 0.2f - 8);
  for (int64_t i = x.count() - 1; i > 0; --i)
    std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(rng.below(i + 1))]);
  std::copy(values.begin(), values.end(), x.data());
  const Pool2dOptions options[] = {
      {}, {.kernel = 3, .stride = 1, .padding = 1}, {.kernel = {3, 2}, .stride = {2, 1}}};
  for (const Pool2dOptions& o : options) {
    check_gradients([&](Inputs in) { return max_pool2d(in[0], o); }, {x});
    check_gradients([&](Inputs in) { return avg_pool2d(in[0], o); }, {x});
  }
  check_gradients([](Inputs in) { return global_max_pool2d(in[0]); }, {x});
  check_gradients([](Inputs in) { return global_avg_pool2d(in[0]); }, {x});
}

TEST(BatchNormGradient, MatchesDifferences) {
  for (const bool training : {true, false})
    for (const Shape& shape : {Shape{7, 3}, Shape{2, 3, 2, 5}}) {
      const int64_t channels = shape[-1];
      const auto f = [&](Inputs in) {
        const Tensor mean = random_tensor({channels}, 8), variance = Tensor::full({channels}, 0.7f);
        return batch_norm(in[0], in.size() > 1 ? in[1] : Var(), in.size() > 1 ? in[2] : Var(), mean, variance,
                          {.training = training, .epsilon = 0.1f});
      };
      check_gradients(f,
                      {random_tensor(shape, 1), random_tensor({channels}, 2), random_tensor({channels}, 3)});
      check_gradients(f, {random_tensor(shape, 1)});
    }
}

TEST(BatchNormGradient, MatchesDifferencesThroughTheActivation) {
  // One channel always on, one always off, one between: no step crosses a corner.
  const Tensor bias = Tensor::from({9, -9, 3}, {3});
  for (const NormActivation activation : {NormActivation::relu, NormActivation::relu6})
    check_gradients(
        [&](Inputs in) {
          const Tensor mean = Tensor::zeros({3}), variance = Tensor::full({3}, 1);
          return batch_norm(in[0], {}, in[1], mean, variance, {.training = true, .activation = activation});
        },
        {random_tensor({6, 3}, 1), bias});
}

TEST(BatchNormInPlace, OverwritesOnlyWhereNothingIsRecordedOrTrained) {
  const Var weight(random_tensor({5}, 2), true), bias(random_tensor({5}, 3), true);
  for (const bool training : {false, true})
    for (const bool tape : {false, true}) {
      const BatchNormOptions options{.training = training, .activation = NormActivation::relu6};
      const auto run = [&](auto norm, const Var& x) {
        const Tensor mean = random_tensor({5}, 4), variance = Tensor::full({5}, 0.7f);
        if (tape) return norm(x, weight, bias, mean, variance, options);
        const NoGrad no_grad;
        return norm(x, weight, bias, mean, variance, options);
      };
      const Var x(random_tensor({3, 2, 4, 5}, 1));
      const std::vector<float> before = x.value().to_vector(),
                               wanted = run(batch_norm, x).value().to_vector();
      EXPECT_EQ(run(batch_norm_in_place, x).value().to_vector(), wanted);
      EXPECT_EQ(x.value().to_vector(), training || tape ? before : wanted);
    }
}

TEST(BatchNorm, OneValueCannotBeTrainedOn) {
  const Tensor mean = Tensor::zeros({2}), variance = Tensor::full({2}, 1);
  const Var x(Tensor::zeros({1, 1, 1, 2}));
  EXPECT_THROW(batch_norm(x, {}, {}, mean, variance, {.training = true}), Error);
  EXPECT_NO_THROW(batch_norm(x, {}, {}, mean, variance));
}

TEST(SamePadding, IsTensorFlows) {
  const Padding2d even = same_padding({8, 7}, 3, 2);
  EXPECT_EQ(std::vector<int64_t>({even.top, even.bottom, even.left, even.right}),
            std::vector<int64_t>({0, 1, 1, 1}));
  const Padding2d dilated = same_padding(9, 3, 1, 2);
  EXPECT_EQ(dilated.top + dilated.bottom, 4);
  const Padding2d none = same_padding(6, 1, 2);
  EXPECT_EQ(none.top + none.bottom + none.left + none.right, 0);
}

TEST(Conv2d, WhatDoesNotFitIsRefusedWithWhatWasWanted) {
  using ::testing::HasSubstr;
  const Var x(Tensor::zeros({1, 4, 4, 6})), weight(Tensor::zeros({4, 6, 3, 3}));
  EXPECT_THAT(error_of([&] {
                conv2d(Var(Tensor::zeros({4, 4})), weight);
              }),
              HasSubstr("wanted [images, height, width, channels]"));
  EXPECT_THAT(error_of([&] { conv2d(x, weight, {}, {.groups = 2}); }), HasSubstr("[filters, 3, rows"));
  EXPECT_THAT(error_of([&] { conv2d(x, weight, {}, {.groups = 4}); }), HasSubstr("4 groups"));
  EXPECT_THAT(error_of([&] { conv2d(x, weight, Var(Tensor::zeros({3}))); }), HasSubstr("wanted [4]"));
  EXPECT_THAT(error_of([&] { conv2d(x, weight, {}, {.dilation = 2}); }), HasSubstr("does not fit"));
  EXPECT_THAT(error_of([&] { conv2d(x, weight, {}, {.stride = 0}); }), HasSubstr("wanted 1 or more"));
  EXPECT_THAT(error_of([&] { conv2d(x, weight, {}, {.padding = int64_t{1} << 60}); }),
              HasSubstr("padding above 1073741824"));
  EXPECT_THAT(error_of([&] { max_pool2d(x, {.kernel = 2, .padding = 2}); }),
              HasSubstr("less than the kernel"));
  EXPECT_THAT(error_of([&] { avg_pool2d(x, {.kernel = 5}); }), HasSubstr("does not fit"));
}

class Golden {
 public:
  explicit Golden(std::string name) : name_(std::move(name)) {}
  Tensor tensor(const std::string& part) const { return file()->tensor(name_ + "." + part); }
  Var leaf(const std::string& part) const {
    return file()->contains(name_ + "." + part) ? Var(tensor(part), true) : Var();
  }
  void expect(const Tensor& got, const std::string& part) const {
    const Tensor wanted = tensor(part);
    ASSERT_EQ(got.count(), wanted.count()) << name_ << " " << part;
    const std::vector<float> a = got.to_vector(), b = wanted.to_vector();
    double largest = 1e-3;
    for (const float value : b) largest = std::max(largest, std::fabs(double{value}));
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 2e-6 * largest) << name_ << " " << part << " element " << i;
  }
  // y, then all gradients.
  void check(const Var& x, const Var& y, const Var& weight = {}, const Var& bias = {}) const {
    expect(y.value(), "y");
    y.backward(tensor("grad").reshape(y.shape()));
    expect(x.grad(), "dx");
    if (weight.defined()) expect(weight.grad(), "d_weight");
    if (bias.defined()) expect(bias.grad(), "d_bias");
  }

 private:
  static const SafetensorsFile& file() {
    static const SafetensorsFile golden(FOVEA_GOLDEN "/conv.safetensors");
    return golden;
  }
  std::string name_;
};

TEST(Conv2dGolden, EqualsPyTorchForwardAndBackward) {
  const std::pair<const char*, Conv2dOptions> cases[] = {
      {"plain", {.padding = 1}},
      {"strided", {.stride = {2, 1}, .padding = {1, 1, 2, 2}}},
      {"dilated", {.padding = 2, .dilation = 2}},
      {"grouped", {.groups = 2}},
      {"depthwise", {.stride = 2, .padding = 1, .groups = 6}},
      {"point", {}},
  };
  for (const auto& [name, options] : cases) {
    const Golden golden(std::string("conv.") + name);
    const Var x = golden.leaf("x"), weight = golden.leaf("weight"), bias = golden.leaf("bias");
    golden.check(x, conv2d(x, weight, bias, options), weight, bias);
  }
}

TEST(Pool2dGolden, EqualsPyTorchForwardAndBackward) {
  const std::pair<const char*, std::function<Var(const Var&)>> cases[] = {
      {"max", [](const Var& x) { return max_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1}); }},
      {"avg", [](const Var& x) { return avg_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1}); }},
      {"avg_inside",
       [](const Var& x) {
         return avg_pool2d(x, {.kernel = {3, 2}, .padding = 1, .count_padding = false});
       }},
      {"global_max", global_max_pool2d},
      {"global_avg", global_avg_pool2d},
  };
  for (const auto& [name, pool] : cases) {
    const Golden golden(std::string("pool.") + name);
    const Var x = golden.leaf("x");
    golden.check(x, pool(x));
  }
}

TEST(BatchNormGolden, EqualsPyTorchForwardBackwardAndInWhatItKeeps) {
  for (const char* name : {"train", "train_relu", "infer", "infer_relu"}) {
    const Golden golden(std::string("norm.") + name);
    const Var x = golden.leaf("x"), weight = golden.leaf("weight"), bias = golden.leaf("bias");
    const Tensor mean = golden.tensor("mean"), variance = golden.tensor("var");
    const bool relu = std::string_view(name).ends_with("relu");
    golden.check(x,
                 batch_norm(x, weight, bias, mean, variance,
                            {.training = std::string_view(name).starts_with("train"),
                             .momentum = 0.3f,
                             .epsilon = 1e-3f,
                             .activation = relu ? NormActivation::relu : NormActivation::none}),
                 weight, bias);
    golden.expect(mean, "mean_after");
    golden.expect(variance, "var_after");
  }
}

}  // namespace
}  // namespace fovea
