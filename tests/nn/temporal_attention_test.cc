// Every pooling of frames against PyTorch (tests/golden/make_clip.py), and clips without frames.
#include "nn/frame_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "io/safetensors.h"

namespace fovea::nn {
namespace {

using testing::HasSubstr;

const std::vector<int64_t> kLengths = {3, 1, 4};

void expect_near(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.count(), wanted.count()) << what;
  const std::vector<float> a = got.to_vector(), b = wanted.to_vector();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << what << " element " << i;
}

class FramePoolings : public testing::TestWithParam<const char*> {
 protected:
  FramePoolings()
      : file_(FOVEA_GOLDEN "/clip.safetensors"),
        prefix_(std::string("pool_") + GetParam() + "."),
        layer_({.width = 6, .kind = frame_weights_named(GetParam()), .hidden = 5}, rng_) {
    load_parameters(layer_, [&](std::string_view name) { return golden("weight." + std::string(name)); });
  }
  Tensor golden(const std::string& name) const { return file_->tensor(prefix_ + name); }

  SafetensorsFile file_;
  std::string prefix_;
  Rng rng_{1};
  FramePooling layer_;
};

TEST_P(FramePoolings, EqualPyTorchForwardAndGradients) {
  const Var x(golden("x"), true);
  const PooledFrames pooled = layer_(x, kLengths, true);
  expect_near(pooled.out.value(), golden("y"), "out");
  if (pooled.weights.defined()) expect_near(pooled.weights, golden("weights"), "weights");
  pooled.out.backward(golden("y_grad"));
  expect_near(x.grad(), golden("dx"), "dx");
  for (const auto& [name, parameter] : layer_.parameters())
    expect_near(parameter.grad(), golden("grad." + name), name);
}

TEST_P(FramePoolings, AClipWithoutFramesGivesZero) {
  const Var x(Tensor::full({2, 6}, 1));
  const std::vector<int64_t> lengths = {0, 2};
  const std::vector<float> out = layer_(x, lengths).out.value().to_vector();
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(out[i], 0);
    EXPECT_NEAR(out[6 + i], 1, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FramePoolings, testing::Values("dot", "additive", "gated", "mean", "max"),
                         [](const auto& each) { return each.param; });

TEST(FrameWeights, UnknownNamesAndShapesAreRefused) {
  const auto said = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(said([] { frame_weights_named("gatd"); }), HasSubstr("did you mean 'gated'"));
  Rng rng(1);
  const FramePooling layer({.width = 4}, rng);
  EXPECT_THAT(said([&] {
                layer(Var(Tensor::zeros({3, 4})), std::vector<int64_t>{2});
              }),
              HasSubstr("wanted [2, 4]"));
}

}  // namespace
}  // namespace fovea::nn
