// Gates of images: gradients against differences, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/gradient_check.h"
#include "autograd/ops.h"
#include "autograd/ops_gates.h"
#include "base/error_of.h"

namespace fovea {
namespace {

using testing::check_gradients;
using testing::random_tensor;
using Inputs = std::span<const Var>;

// Far apart: a step must not change which is largest.
Tensor spread(const Shape& shape, uint64_t seed) {
  const Tensor x(shape);
  Rng rng(seed);
  for (int64_t i = 0; i < x.count(); ++i) x.data()[i] = 0.05f * static_cast<float>(i - x.count() / 2);
  for (int64_t i = x.count() - 1; i > 0; --i) std::swap(x.data()[i], x.data()[rng.below(i + 1)]);
  return x;
}

Tensor small(const Shape& shape, uint64_t seed) {
  const Tensor x = random_tensor(shape, seed);
  for (float& value : x.span()) value *= 0.05f;
  return x;
}

// One feature passes the ReLU and one does not, whatever the step.
std::vector<Tensor> channel_inputs(const Shape& shape) {
  const int64_t channels = shape[3];
  return {spread(shape, 1), small({2, channels}, 3), Tensor::from({2, -2}, {2}),
          random_tensor({channels, 2}, 2), random_tensor({channels}, 4)};
}

TEST(ChannelGateGradient, MatchesDifferences) {
  for (const bool with_max : {false, true})
    for (const Shape& shape : {Shape{2, 3, 2, 3}, Shape{1, 1, 1, 5}, Shape{3, 2, 2, 17}}) {
      check_gradients(
          [&](Inputs in) {
            return gate_images(in[0], {in[1], in[2], in[3], in[4], with_max}).y;
          },
          channel_inputs(shape));
    }
}

TEST(SpatialGateGradient, MatchesDifferences) {
  for (const Shape& shape : {Shape{2, 3, 4, 3}, Shape{1, 1, 1, 1}, Shape{1, 2, 5, 18}})
    for (const int64_t kernel : {1, 3, 7}) {
      check_gradients([](Inputs in) { return gate_images(in[0], {}, {in[1]}).y; },
                      {spread(shape, 6), small({1, 2, kernel, kernel}, 5)});
    }
}

TEST(BothGatesGradient, MatchesDifferences) {
  for (const bool with_max : {false, true}) {
    std::vector<Tensor> inputs = channel_inputs({2, 3, 2, 3});
    inputs.push_back(small({1, 2, 3, 3}, 7));
    check_gradients(
        [&](Inputs in) {
          return gate_images(in[0], {in[1], in[2], in[3], in[4], with_max}, {in[5]}).y;
        },
        inputs);
  }
}

TEST(GateImages, EqualsItsDefinition) {
  const Var x(random_tensor({2, 5, 4, 6}, 1)), w1(random_tensor({3, 6}, 2)), b1(random_tensor({3}, 3)),
      w2(random_tensor({6, 3}, 4)), b2(random_tensor({6}, 5)), kernel(random_tensor({1, 2, 3, 3}, 6));
  const auto network = [&](const Var& pooled) {
    return linear(linear(pooled, w1, b1, Activation::relu), w2, b2);
  };
  const Var gate = sigmoid(network(global_avg_pool2d(x)) + network(global_max_pool2d(x)));
  const Var gated = x * reshape(gate, {2, 1, 1, 6});
  const Var parts[] = {mean(gated, 3, true), max(gated, 3, true)};
  const Var places = sigmoid(conv2d(concat(parts, 3), kernel, {}, {.padding = 1}));
  const GatedImages got = gate_images(x, {w1, b1, w2, b2, true}, {kernel});
  const auto expect_near = [](const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.count(), b.count());
    for (int64_t i = 0; i < a.count(); ++i) ASSERT_NEAR(a.data()[i], b.data()[i], 1e-5);
  };
  expect_near(got.channel, gate.value());
  expect_near(got.spatial, places.value());
  expect_near(got.y.value(), (gated * places).value());
}

TEST(GateImages, ReadsTransposedImages) {
  const Var x(random_tensor({2, 3, 4, 5}, 1)), kernel(random_tensor({1, 2, 3, 3}, 2));
  const Var turned = permute(x, {0, 2, 3, 1});
  EXPECT_EQ(gate_images(turned, {}, {kernel}).y.value().to_vector(),
            gate_images(Var(turned.value().clone()), {}, {kernel}).y.value().to_vector());
}

TEST(GateImages, WhatDoesNotFitIsRefusedWithWhatWasWanted) {
  using ::testing::HasSubstr;
  const Var x(Tensor::zeros({1, 2, 2, 3})), w1(Tensor::zeros({2, 3})), w2(Tensor::zeros({3, 2}));
  EXPECT_THAT(error_of([&] { gate_images(x, {}); }), HasSubstr("no weights"));
  EXPECT_THAT(error_of([&] { gate_images(reshape(x, {4, 3}), {w1, {}, w2}); }), HasSubstr("[4, 3]"));
  EXPECT_THAT(error_of([&] { gate_images(x, {w2, {}, w1}); }), HasSubstr("wanted [hidden, 3]"));
  EXPECT_THAT(error_of([&] { gate_images(x, {w1, {}, w1}); }), HasSubstr("wanted [3, 2]"));
  EXPECT_THAT(error_of([&] { gate_images(x, {w1, Var(Tensor::zeros({3})), w2}); }), HasSubstr("wanted [2]"));
  EXPECT_THAT(error_of([&] { gate_images(x, {}, {Var(Tensor::zeros({1, 2, 4, 4}))}); }), HasSubstr("odd"));
}

}  // namespace
}  // namespace fovea
