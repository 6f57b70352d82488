// Every pooling of frames against PyTorch (tests/golden/make_clip.py, make_gates.py), clips without frames, and padded clips.
#include "nn/temporal_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "autograd/ops.h"
#include "io/safetensors.h"
#include "nn/attention_pooling.h"
#include "nn/choices.h"
#include "nn/init.h"

namespace fovea::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<int64_t> kLengths = {3, 1, 4};

void expect_near(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.count(), wanted.count()) << what;
  const std::vector<float> a = got.to_vector(), b = wanted.to_vector();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << what << " element " << i;
}

class TemporalAttentions : public testing::TestWithParam<const char*> {
 protected:
  TemporalAttentions()
      : file_(FOVEA_GOLDEN "/clip.safetensors"),
        prefix_(std::string("pool_") + GetParam() + "."),
        layer_({.width = 6, .pooling = frame_pooling_named(GetParam()), .hidden = 5}, rng_) {
    load_parameters(layer_, [&](std::string_view name) { return golden("weight." + std::string(name)); });
  }
  Tensor golden(const std::string& name) const { return file_->tensor(prefix_ + name); }

  SafetensorsFile file_;
  std::string prefix_;
  Rng rng_{1};
  TemporalAttention layer_;
};

TEST_P(TemporalAttentions, EqualPyTorchForwardAndGradients) {
  const Var x(golden("x"), true);
  const PooledFrames pooled = layer_(x, kLengths, true);
  expect_near(pooled.out.value(), golden("y"), "out");
  if (pooled.weights.defined()) expect_near(pooled.weights, golden("weights"), "weights");
  pooled.out.backward(golden("y_grad"));
  expect_near(x.grad(), golden("dx"), "dx");
  for (const auto& [name, parameter] : layer_.parameters())
    expect_near(parameter.grad(), golden("grad." + name), name);
}

TEST_P(TemporalAttentions, AClipWithoutFramesGivesZero) {
  const Var x(Tensor::full({2, 6}, 1));
  const std::vector<int64_t> lengths = {0, 2};
  const std::vector<float> out = layer_(x, lengths).out.value().to_vector();
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(out[i], 0);
    EXPECT_NEAR(out[6 + i], 1, 1e-6);
  }
}

// Padded clips whose missing frames hold NaN, against the same frames without padding: outputs and all gradients.
TEST_P(TemporalAttentions, OfPaddedClipsReadOnlyTheFramesThatExist) {
  const std::vector<uint8_t> present = {1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1};
  const Tensor packed = golden("x");  // [8, 6]
  const Tensor padded = Tensor::full({3, 4, 6}, std::numeric_limits<float>::quiet_NaN());
  std::vector<int64_t> places;
  for (size_t i = 0; i < present.size(); ++i)
    if (present[i] != 0) places.push_back(static_cast<int64_t>(i));
  for (size_t i = 0; i < places.size(); ++i)
    std::copy_n(packed.data() + static_cast<int64_t>(i) * 6, 6, padded.data() + places[i] * 6);
  const Var x(padded, true);
  const Var out = layer_(x, {.present = present});
  expect_near(out.value(), golden("y"), "out");
  out.backward(golden("y_grad"));
  for (const auto& [name, parameter] : layer_.parameters())
    expect_near(parameter.grad(), golden("grad." + name), name);
  const Tensor dx = golden("dx"), got = x.grad();
  for (size_t i = 0, frame = 0; i < present.size(); ++i) {
    for (int64_t j = 0; j < 6; ++j) {
      const float value = got.data()[static_cast<int64_t>(i) * 6 + j];
      if (present[i] == 0)
        EXPECT_EQ(value, 0);
      else
        EXPECT_NEAR(value, dx.data()[static_cast<int64_t>(frame) * 6 + j], 1e-5);
    }
    frame += present[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, TemporalAttentions, testing::Values("dot", "additive", "gated", "mean", "max"),
                         [](const auto& each) { return each.param; });

struct DotAttention {
  explicit DotAttention(int64_t width) : layer({.width = width, .pooling = FramePooling::dot}, rng) {}
  Rng rng{1};
  TemporalAttention layer;
};

TEST(TemporalAttention, OfMapsEqualsPyTorchWithAndWithoutMissingFrames) {
  const SafetensorsFile file(FOVEA_GOLDEN "/gates.safetensors");
  const std::vector<uint8_t> holes{1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0};
  const std::pair<std::string, Frames> cases[] = {
      {"time", {}}, {"time_holes", {.present = holes}}, {"time_maps", {.present = holes}}};
  for (const auto& [name, frames] : cases) {
    const DotAttention dot(6);
    load_parameters(dot.layer, [&, &prefix = name](std::string_view parameter) {
      return file->tensor(prefix + ".weight." + std::string(parameter));
    });
    const Var x(file->tensor(name + ".x"), true);
    const Var y = dot.layer(x, frames);
    expect_near(y.value(), file->tensor(name + ".y"), name);
    y.backward(file->tensor(name + ".y_grad"));
    expect_near(x.grad(), file->tensor(name + ".dx"), name + " dx");
    for (const auto& [parameter, value] : dot.layer.parameters())
      expect_near(value.grad(), file->tensor(name + ".grad." + parameter), name + " " + parameter);
  }
}

TEST(TemporalAttention, LengthsAreMarksOfTheFirstFramesAndNoFramesGiveZero) {
  const DotAttention dot(2);
  dot.layer.parameters()[0].value.set_value(Tensor::from({1, -1}, {2}));
  const Var x(Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 2, 2}));
  const std::vector<int64_t> lengths{2, 1, 0};
  const std::vector<uint8_t> present{1, 1, 1, 0, 0, 0};
  const std::vector<float> got = dot.layer(x, {.lengths = lengths}).value().to_vector();
  EXPECT_EQ(got, dot.layer(x, {.present = present}).value().to_vector());
  EXPECT_THAT(std::vector<float>(got.begin() + 2, got.end()), ElementsAre(5, 6, 0, 0));
}

TEST(TemporalAttention, ShowsTheWeightsOfExistingFramesToAnObserver) {
  class Everything : public AttentionObserver {
   public:
    Capture capture(const Call& call) override {
      name = call.name;
      return {{0}, {0, 1}};
    }
    void observe(const Call&, const Capture&, const Captured& captured) override { seen = captured.weights; }
    std::string name;
    Tensor seen;
  } everything;
  const DotAttention dot(4);
  {
    const ObserveAttention observe(everything);
    dot.layer(Var(Tensor::full({2, 5, 4}, 0.5f)), {.lengths = std::vector<int64_t>{5, 2}}, "time");
  }
  EXPECT_EQ(everything.name, "time");
  ASSERT_EQ(everything.seen.shape(), (Shape{1, 1, 2, 7}));
  for (int64_t t = 0; t < 7; ++t) {
    EXPECT_NEAR(everything.seen.data()[t], t < 5 ? 1 / 5.0 : 0, 1e-6)
        << "an untrained query sees all frames alike";
    EXPECT_NEAR(everything.seen.data()[7 + t], t < 5 ? 0 : 1 / 2.0, 1e-6);
  }
}

// The two layers that pool by a learned query differ in what they pool and in the names of their parameters alone.
TEST(TemporalAttention, ChoosesFramesAsPoolingOfTextsChoosesWords) {
  const std::vector<int64_t> lengths = {4, 0, 5};
  const std::map<std::string, std::string> names = {{"weight", "v.weight"},
                                                    {"bias", "v.bias"},
                                                    {"gate_weight", "u.weight"},
                                                    {"gate_bias", "u.bias"},
                                                    {"query", "query"}};
  Rng numbers(9);
  const Tensor states = normal({9, 4}, 0, 1, numbers);
  for (const char* pooling : {"dot", "additive", "gated"})
    for (const char* selection :
         {"soft", "hard", "gumbel(0.5)", "sparsemax", "top_k(2)", "sigmoid", "identity"}) {
      SCOPED_TRACE(std::string(pooling) + " " + selection);
      Rng rng(1);
      const std::string score = pooling == std::string("dot") ? "scaled_dot" : pooling;
      const AttentionPooling words({.width = 4, .score = score, .hidden = 3, .selection = selection}, rng);
      const TemporalAttention frames(
          {.width = 4, .pooling = frame_pooling_named(pooling), .hidden = 3, .selection = selection}, rng);
      std::map<std::string, Var> of_frames;
      for (const auto& [name, parameter] : frames.parameters()) of_frames[name] = parameter;
      for (const auto& [name, parameter] : words.parameters())
        of_frames.at(names.at(name)).set_value(parameter.value().clone());
      const auto train = [&](const auto& pool) {
        Context context{.training = true, .rng = Rng(6)};
        context.rows_of_example = {1, 1, 1};
        const Var x(states.clone(), true), out = pool(x, context);
        Var loss = sum(out * out);
        if (!context.choices.empty()) loss = loss + choices_loss(context, std::vector<float>{1, 2, 4});
        loss.backward();
        return std::pair{out.value().contiguous(), x.grad()};
      };
      const auto [wanted, wanted_grad] =
          train([&](const Var& x, Context& c) { return words(x, lengths, c); });
      const auto [got, grad] = train([&](const Var& x, Context& c) { return frames(x, lengths, c).out; });
      expect_near(got, wanted, "out");
      expect_near(grad, wanted_grad, "dx");
      for (const auto& [name, parameter] : words.parameters())
        expect_near(of_frames.at(names.at(name)).grad(), parameter.grad(), name);
      Context use;
      expect_near(frames(Var(states), lengths).out.value(), words(Var(states), lengths, use).value(),
                  "at use");
    }
}

TEST(TemporalAttention, UnknownNamesAndShapesAreRefused) {
  const auto said = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(said([] { frame_pooling_named("gatd"); }), HasSubstr("did you mean 'gated'"));
  Rng rng(1);
  const TemporalAttention layer({.width = 4}, rng);
  EXPECT_THAT(said([&] {
                layer(Var(Tensor::zeros({3, 4})), std::vector<int64_t>{2});
              }),
              HasSubstr("expected [2, 4]"));
  const Var x(Tensor::zeros({2, 3, 4}));
  EXPECT_THAT(said([&] { layer(Var(Tensor::zeros({2, 3, 5}))); }), HasSubstr("[clips, frames, 4]"));
  EXPECT_THAT(said([&] {
                layer(x, {.present = std::vector<uint8_t>{1, 1, 1}});
              }),
              HasSubstr("3 marks of presence"));
  EXPECT_THAT(said([&] { layer(x, {.lengths = std::vector<int64_t>{1}}); }),
              HasSubstr("1 lengths for 2 clips"));
  EXPECT_THAT(said([&] { layer(x, {.lengths = std::vector<int64_t>{1, 4}}); }), HasSubstr("expected 0 to 3"));
}

}  // namespace
}  // namespace fovea::nn
