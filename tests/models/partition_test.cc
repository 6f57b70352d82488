// The network with partitioned tasks against PyTorch (tests/golden/make_partition.py), and what its gate promises: no
// gradient of the fine loss outside of it.
#include "models/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/gradient_check.h"
#include "autograd/ops.h"
#include "base/error_of.h"
#include "base/parallel.h"
#include "data/ships.h"
#include "io/safetensors.h"
#include "models/golden_training.h"
#include "nn/gated_loss.h"

namespace fovea::models {
namespace {

using ::testing::HasSubstr;

std::vector<int32_t> whole_numbers(const std::vector<float>& values) {
  std::vector<int32_t> numbers;
  for (const float value : values) numbers.push_back(static_cast<int32_t>(value));
  return numbers;
}

PartitionConfig small(const std::string& branches) {
  PartitionConfig config{.width = 4, .branches = branches, .end_weight = 3};
  if (branches == "gated") config.gate_steps = 6;
  return config;
}

TEST(Partition, EqualsPyTorchsLossGradientsAndTenStepsWithEveryKindOfBranches) {
  const SafetensorsFile file(FOVEA_GOLDEN "/partition.safetensors");
  for (const std::string branches : {"gated", "ungated", "single"}) {
    SCOPED_TRACE(branches);
    const std::string prefix = branches + ".";
    const Var images(file->tensor(prefix + "images"));
    const std::vector<int32_t> coarse = whole_numbers(file->read(prefix + "coarse")),
                               fine = whole_numbers(file->read(prefix + "fine"));
    Rng rng(1);
    const Partition network(small(branches), rng);
    nn::load_parameters(network, [&](std::string_view parameter) {
      for (const auto& [own, value] : network.buffers())
        if (own == parameter) return value.value();
      return file->tensor(prefix + "weight." + std::string(parameter));
    });
    const nn::Context train{.training = true}, infer;
    GoldenTraining golden = golden_training(file, prefix, "grad.");
    golden.learning_rate = 0.003;
    golden.loss = golden.gradients = 3e-5;
    golden.growth = 2;
    expect_golden_training(network, golden, [&](int64_t) {
      return network.loss(images, {coarse, fine}, train);
    });
    const Partition::Logits logits = network.logits(images, infer);
    const auto expect = [&](const Var& got, const std::string& name) {
      const std::vector<float> a = got.value().to_vector(), b = file->read(prefix + name);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 3e-3) << name << " " << i;
    };
    expect(logits.coarse, "coarse_logits");
    if (branches != "single") expect(logits.fine, "fine_logits");
  }
}

TEST(GatedLoss, IsTheWeightedMeanAndItsGradientMatchesDifferences) {
  const Tensor mask = Tensor::from({1, 0, 0.5f, 2}, {4});
  const Var loss(Tensor::from({3, 100, 4, 1}, {4}));
  EXPECT_FLOAT_EQ(nn::gated_loss(loss, mask).value().item(), (3 + 2 + 2) / 3.5f);
  testing::check_gradients([&](std::span<const Var> in) { return nn::gated_loss(in[0], mask); },
                           {testing::random_tensor({2, 2}, 1)});
}

TEST(GatedLoss, OutsideTheMaskTheGradientIsExactlyZeroWhateverTheLoss) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Var loss(Tensor::from({inf, 2, nan, 4}, {4}), true);
  const Var gated = nn::gated_loss(loss, Tensor::from({0, 1, 0, 1}, {4}));
  EXPECT_EQ(gated.value().item(), 3);
  gated.backward();
  EXPECT_EQ(loss.grad().to_vector(), (std::vector<float>{0, 0.5f, 0, 0.5f}));
  const Var closed(Tensor::from({1, 2}, {2}), true);
  const Var nothing = nn::gated_loss(closed, Tensor::zeros({2}));
  EXPECT_EQ(nothing.value().item(), 0);
  nothing.backward();
  EXPECT_EQ(closed.grad().to_vector(), (std::vector<float>{0, 0}));
  EXPECT_THROW(nn::gated_loss(loss, Tensor::zeros({3})), Error);
  EXPECT_THROW(nn::gated_loss(loss, Tensor::from({0, -1, 0, 1}, {4})), Error);
  EXPECT_THROW(nn::gated_loss(loss, Tensor::from({0, nan, 0, 1}, {4})), Error);
}

// A picture, and labels that have ends in the left half alone.
struct Example {
  Tensor x = Tensor(Shape{1, 16, 16, 3});
  std::vector<int32_t> coarse, fine;
  Example() {
    Rng rng(4);
    for (float& value : x.span()) value = rng.normal();
    for (int i = 0; i < 64; ++i) {
      coarse.push_back(i % 8 < 4 ? 0 : 2);
      fine.push_back(i / 8 < 4 ? 0 : 1);
    }
  }
};

// With the gate from the labels, the labels of the fine branch in the right half change nothing.
TEST(Partition, WhatLiesOutsideTheGateDoesNotReachTheFineBranch) {
  const Example example;
  std::vector<std::vector<float>> gradients;
  for (const int32_t outside : {0, 1}) {
    PartitionConfig config{.width = 4, .gate = "labels"};
    Rng rng(1);
    const Partition network(config, rng);
    std::vector<int32_t> fine = example.fine;
    for (int i = 0; i < 64; ++i)
      if (example.coarse[static_cast<size_t>(i)] != 0) fine[static_cast<size_t>(i)] = outside;
    network.loss(Var(example.x), {example.coarse, fine}, nn::Context{.training = true}).backward();
    gradients.emplace_back();
    for (const auto& [name, parameter] : network.parameters()) {
      const std::vector<float> grad = parameter.grad().to_vector();
      gradients.back().insert(gradients.back().end(), grad.begin(), grad.end());
    }
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(Partition, TheGateMovesFromLabelsToPredictionAndOnlyTrainingCounts) {
  const PartitionConfig config{.gate_steps = 10};
  EXPECT_EQ(Partition::prediction_share(config, 0), 0);
  EXPECT_EQ(Partition::prediction_share(config, 5), 0.5);
  EXPECT_EQ(Partition::prediction_share(config, 100), 1);
  EXPECT_EQ(Partition::prediction_share({.gate = "labels"}, 100), 0);
  EXPECT_EQ(Partition::prediction_share({.gate = "prediction"}, 0), 1);
  const Example example;
  Rng rng(1);
  const Partition network({.width = 4}, rng);
  const auto steps = [&] {
    for (const auto& [name, value] : network.buffers())
      if (name == "steps") return value.value().item();
    return -1.0f;
  };
  network.loss(Var(example.x), {example.coarse, example.fine}, nn::Context{});
  EXPECT_EQ(steps(), 0);
  network.loss(Var(example.x), {example.coarse, example.fine}, nn::Context{.training = true});
  EXPECT_EQ(steps(), 1);
}

TEST(Partition, ProbabilitiesOfACellSumToOne) {
  const Example example;
  for (const std::string branches : {"gated", "ungated", "single"}) {
    Rng rng(1);
    const Partition network({.width = 4, .branches = branches}, rng);
    const Tensor p = network.probabilities(network.logits(Var(example.x), nn::Context{}));
    ASSERT_EQ(p.shape(), (Shape{1, 8, 8, 5}));
    for (int64_t i = 0; i < 64; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < 5; ++k) {
        EXPECT_GE(p.data()[5 * i + k], 0);
        sum += double{p.data()[5 * i + k]};
      }
      EXPECT_NEAR(sum, 1, 1e-5) << branches;
    }
  }
}

TEST(Partition, SameBitsForAnyNumberOfThreads) {
  const Example example;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Rng rng(2);
    const Partition network({.width = 8}, rng);
    network.loss(Var(example.x), {example.coarse, example.fine}, nn::Context{.training = true}).backward();
    results.emplace_back();
    for (const auto& [name, parameter] : network.parameters()) {
      const std::vector<float> grad = parameter.grad().to_vector();
      results.back().insert(results.back().end(), grad.begin(), grad.end());
    }
  }
  set_num_threads(0);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Partition, NonsenseIsRefused) {
  Rng rng(1);
  EXPECT_THAT(error_of([&] { Partition({.branches = "both"}, rng); }),
              HasSubstr("wanted gated, ungated or single"));
  EXPECT_THAT(error_of([&] { Partition({.gate = "never"}, rng); }), HasSubstr("wanted schedule, labels or"));
  EXPECT_THAT(error_of([&] { Partition({.branches = "single", .gate = "labels"}, rng); }),
              HasSubstr("gate applies to gated branches only"));
  EXPECT_THAT(error_of([&] { Partition({.gate = "labels", .gate_steps = 7}, rng); }),
              HasSubstr("gate_steps applies"));
  const Partition network({.width = 4}, rng);
  EXPECT_THAT(error_of([&] {
                network.logits(Var(Tensor::zeros({1, 12, 16, 3})), nn::Context{});
              }),
              HasSubstr("multiples of 8"));
}

}  // namespace
}  // namespace fovea::models
