#include "nn/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/ops.h"
#include "io/temporary_directory.h"
#include "nn/weights.h"

namespace fovea::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<NamedParameter>& list) {
  std::vector<std::string> names;
  for (const NamedParameter& one : list) names.push_back(one.name);
  return names;
}

struct Net : Module {
  explicit Net(Rng& rng) : conv(2, 4, 3, rng, {.padding = 1}), norm(4) {
    add_child("conv", conv);
    add_child("norm", norm);
  }
  Var operator()(const Var& x, const Context& context) const {
    return norm(conv(x), context, NormActivation::relu);
  }
  Conv2d conv;
  BatchNorm2d norm;
};

Var picture(uint64_t seed) {
  Rng rng(seed);
  const Tensor t(Shape{3, 5, 5, 2});
  for (float& value : t.span()) value = rng.normal();
  return Var(t);
}

TEST(Conv2d, BeginsAsPyTorchDoes) {
  Rng rng(1);
  const Conv2d conv(32, 64, {3, 5}, rng, {.groups = 2});
  EXPECT_EQ(conv.weight.shape(), (Shape{64, 16, 3, 5}));
  EXPECT_EQ(conv.bias.shape(), (Shape{64}));
  const float bound = 1 / std::sqrt(16.0f * 15);
  double squares = 0;
  for (const float value : conv.weight.value().span()) {
    ASSERT_LE(std::fabs(value), bound);
    squares += double{value} * value;
  }
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(conv.weight.count())), bound / std::sqrt(3.0), 0.001);
  EXPECT_THROW(Conv2d(3, 4, 3, rng, {.groups = 2}), Error);
}

TEST(Buffers, BelongToTheStateAndNotToTheParameters) {
  Rng rng(1);
  const Net net(rng);
  EXPECT_THAT(names_of(net.parameters()),
              ElementsAre("conv.weight", "conv.bias", "norm.weight", "norm.bias"));
  EXPECT_THAT(names_of(net.buffers()), ElementsAre("norm.running_mean", "norm.running_var"));
  EXPECT_THAT(names_of(net.state()), ElementsAre("conv.weight", "conv.bias", "norm.weight", "norm.bias",
                                                 "norm.running_mean", "norm.running_var"));
  EXPECT_EQ(net.parameter_count(), 4 * 2 * 9 + 4 + 4 + 4);
  for (const NamedParameter& buffer : net.buffers()) EXPECT_FALSE(buffer.value.requires_grad());
}

TEST(BatchNorm2d, FollowsTheBatchesOnlyWhileTraining) {
  Rng rng(1);
  const Net net(rng);
  const std::vector<float> before = net.norm.running_mean.value().to_vector();
  const Context infer, train{.training = true};
  const std::vector<float> first = net(picture(1), infer).value().to_vector();
  EXPECT_EQ(net.norm.running_mean.value().to_vector(), before);
  net(picture(1), train);
  EXPECT_NE(net.norm.running_mean.value().to_vector(), before);
  EXPECT_NE(net(picture(1), infer).value().to_vector(), first);
}

TEST(BatchNorm2d, RunningMomentsAreSavedAndLoadedBitForBit) {
  const TemporaryDirectory directory;
  Rng rng(1), other(2);
  const Net net(rng), loaded(other);
  const Context train{.training = true}, infer;
  net(picture(1), train);
  net(picture(2), train);
  save_weights(net, directory / "net");
  load_weights(loaded, directory / "net");
  EXPECT_EQ(loaded.norm.running_var.value().to_vector(), net.norm.running_var.value().to_vector());
  EXPECT_EQ(loaded(picture(3), infer).value().to_vector(), net(picture(3), infer).value().to_vector());
}

TEST(BatchNorm2d, AFileWithoutItsMomentsIsRefusedAndPyTorchsCountIsNot) {
  const TemporaryDirectory directory;
  Rng rng(1);
  const Net net(rng);
  std::vector<TensorToWrite> parts = weights_of(net);
  const int64_t batches = 7;
  parts.push_back({"norm.num_batches_tracked", Dtype::i64, {}, std::as_bytes(std::span(&batches, 1))});
  save_safetensors(directory / "counted", parts);
  EXPECT_NO_THROW(load_weights(net, directory / "counted"));
  std::erase_if(parts, [](const TensorToWrite& part) { return part.name == "norm.running_var"; });
  save_safetensors(directory / "lacking", parts);
  try {
    load_weights(net, directory / "lacking");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'norm.running_var' of shape [4] is missing"));
  }
}

}  // namespace
}  // namespace fovea::nn
