// The clip classifier against PyTorch (tests/golden/make_clip.py): loss, gradients, ten steps, weights of frames.
#include "models/clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/parallel.h"
#include "io/safetensors.h"
#include "models/golden_training.h"

namespace fovea::models {
namespace {

using testing::HasSubstr;

TEST(ClipClassifier, EqualsPyTorchsLossGradientsAndTenSteps) {
  const SafetensorsFile file(FOVEA_GOLDEN "/clip.safetensors");
  const std::vector<int64_t> lengths = {2, 5, 1};
  const std::vector<int32_t> labels = {0, 2, 1};
  for (const char* pooling : {"gated", "max"}) {
    SCOPED_TRACE(pooling);
    const std::string prefix = std::string("clip_") + pooling + ".";
    const Tensor frames = file->tensor(prefix + "frames");
    Rng rng(1);
    const ClipClassifier network({.classes = 3,
                                  .channels = frames.size(3),
                                  .height = frames.size(1),
                                  .width = frames.size(2),
                                  .pooling = pooling,
                                  .filters = 4,
                                  .features = 12,
                                  .hidden = 7},
                                 rng);
    nn::load_parameters(
        network, [&](std::string_view name) { return file->tensor(prefix + "weight." + std::string(name)); });
    nn::Context context{.training = true};
    GoldenTraining golden = golden_training(file, prefix, "grad.");
    golden.learning_rate = 0.003;
    golden.loss = 1e-5;
    golden.growth = 3;
    expect_golden_training(network, golden,
                           [&](int64_t) { return network.loss(frames, lengths, labels, context); });
    const ClipResult result = network.classify(frames, lengths);
    const std::vector<float> logits = file->read(prefix + "logits"), weights = file->read(prefix + "weights");
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(result.logits.data()[i], logits[i], 2e-4);
    ASSERT_EQ(result.weights.size(), weights.size());
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(result.weights[i], weights[i], 1e-4);
  }
}

TEST(ClipClassifier, SameBitsForAnyNumberOfThreads) {
  const Tensor frames(Shape{23, 28, 28, 1});
  Rng pixels(3);
  for (float& value : frames.span()) value = pixels.uniform();
  const std::vector<int64_t> lengths = {5, 11, 7};
  for (const auto& [pooling, selection] : {std::pair{"gated", "soft"},
                                           {"gated", "hard"},
                                           {"dot", "gumbel(1)"},
                                           {"mean", "soft"},
                                           {"max", "soft"}}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      Rng rng(2);
      const ClipClassifier network(
          {.classes = 3, .pooling = pooling, .selection = selection, .dropout = 0.2f}, rng);
      nn::Context context{.training = true, .rng = Rng(6)};
      network.loss(frames, lengths, std::vector<int32_t>{0, 1, 2}, context).backward();
      std::vector<float> all;
      for (const auto& [name, parameter] : network.parameters())
        for (const float value : parameter.grad().to_vector()) all.push_back(value);
      results.push_back(std::move(all));
    }
    set_num_threads(0);
    EXPECT_EQ(results[0], results[1]) << pooling << ' ' << selection;
    EXPECT_EQ(results[0], results[2]) << pooling << ' ' << selection;
  }
}

TEST(ClipClassifier, NonsenseIsRefused) {
  const auto said = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  Rng rng(1);
  EXPECT_THAT(said([&] { ClipClassifier({.classes = 2, .pooling = "sum"}, rng); }),
              HasSubstr("unknown pooling 'sum'"));
  EXPECT_THAT(said([&] { ClipClassifier({.classes = 2, .height = 12}, rng); }), HasSubstr("height is 12"));
  const ClipClassifier network({.classes = 2}, rng);
  EXPECT_THAT(said([&] {
                network.classify(Tensor::zeros({1, 20, 28, 1}), std::vector<int64_t>{1});
              }),
              HasSubstr("wanted [frames, 28, 28, 1]"));
}

}  // namespace
}  // namespace fovea::models
