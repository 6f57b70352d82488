// The image classifiers against PyTorch (tests/golden/make_image_classifier.py): loss, every gradient, the
// losses of ten steps of Adam, and what it says afterwards by its running moments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error_of.h"
#include "base/parallel.h"
#include "io/safetensors.h"
#include "models/golden_training.h"
#include "models/resnet.h"
#include "models/vit.h"

namespace fovea::models {
namespace {

using ::testing::HasSubstr;

// Loss, gradients, ten steps of Adam, and the logits afterwards of a network that has this name in the file.
void expect_golden(const std::string& name, const ImageClassifier& network) {
  SCOPED_TRACE(name);
  const SafetensorsFile file(FOVEA_GOLDEN "/image_classifier.safetensors");
  const std::string prefix = name + ".";
  const Var images(file->tensor(prefix + "images"));
  std::vector<int32_t> labels;
  for (const float label : file->read(prefix + "labels")) labels.push_back(static_cast<int32_t>(label));
  nn::load_parameters(network, [&](std::string_view parameter) {
    // Running moments begin as they are made.
    if (parameter.ends_with("running_mean") || parameter.ends_with("running_var")) {
      for (const auto& [own, value] : network.buffers())
        if (own == parameter) return value.value();
    }
    return file->tensor(prefix + "weight." + std::string(parameter));
  });
  nn::Context train{.training = true}, infer;
  GoldenTraining golden = golden_training(file, prefix, "grad.");
  golden.learning_rate = 0.003;
  golden.loss = 2e-5;
  golden.growth = 2;
  expect_golden_training(network, golden, [&](int64_t) { return network.loss(images, labels, 0.1f, train); });
  const std::vector<float> logits = file->read(prefix + "logits"),
                           got = network.logits(images, infer).value().to_vector();
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(got[i], logits[i], 2e-3) << "logit " << i;
}

TEST(ResNet, EqualsPyTorchsLossGradientsAndTenStepsWithEveryGate) {
  const std::pair<const char*, int64_t> cases[] = {{"none", 3}, {"se", 1}, {"cbam", 3}, {"sk", 1}};
  for (const auto& [gate, channels] : cases) {
    Rng rng(1);
    expect_golden(
        gate,
        ResNet({.classes = 5, .channels = channels, .depth = 8, .width = 4, .gate = gate, .reduction = 2},
               rng));
  }
}

VitConfig small_vit(int64_t channels, bool norm_first = true) {
  return {.classes = 5,
          .channels = channels,
          .picture_height = 8,
          .picture_width = 12,
          .patch = 4,
          .width = 8,
          .heads = 2,
          .hidden = 12,
          .layers = 2,
          .dropout = 0,
          .norm_first = norm_first};
}

TEST(Vit, EqualsPyTorchsLossGradientsAndTenSteps) {
  Rng rng(1);
  expect_golden("vit", Vit(small_vit(3), rng));
  expect_golden("vit_post", Vit(small_vit(1, false), rng));
}

// A token's own patch moves its class token through any attention; gradients reach every parameter.
TEST(Vit, TrainsWithAnyAttentionSpec) {
  for (const char* spec :
       {"scaled_dot / window(2,2) | global(0) / soft", "cosine(0.1) / full / sparsemax",
        "scaled_dot / full / hard", "scaled_dot / full / gumbel(1)", "scaled_dot + sink / full / soft"}) {
    SCOPED_TRACE(spec);
    Rng rng(3);
    VitConfig config = small_vit(1);
    config.self_attention = spec;
    const Vit network(config, rng);
    const Tensor images(Shape{3, 8, 12, 1});
    for (float& value : images.span()) value = rng.normal();
    nn::Context train{.training = true};
    network.loss(Var(images), std::vector<int32_t>{0, 1, 2}, 0, train).backward();
    for (const auto& [name, parameter] : network.parameters())
      if (name.ends_with("in_proj_weight") || name == "positions" || name == "class_token") {
        double size = 0;
        for (const float value : parameter.grad().to_vector()) size += std::abs(double{value});
        EXPECT_GT(size, 0) << name;
      }
  }
}

TEST(Vit, ShowsTheAttentionOfEveryLayerToClassTokenAndPatches) {
  class Count : public AttentionObserver {
   public:
    Capture capture(const Call& call) override {
      EXPECT_EQ(call.site.kind, AttentionSite::Kind::self);
      EXPECT_EQ(call.keys, 7);
      EXPECT_EQ(call.heads, 2);
      layers.push_back(call.site.layer);
      return {};
    }
    void observe(const Call&, const Capture&, const Captured&) override {}
    std::vector<int64_t> layers;
  } count;
  Rng rng(1);
  const Vit network(small_vit(1), rng);
  nn::Context infer;
  const ObserveAttention observe(count);
  network.logits(Var(Tensor::zeros({1, 8, 12, 1})), infer);
  EXPECT_EQ(count.layers, (std::vector<int64_t>{0, 1}));
}

TEST(Vit, NonsenseIsRefused) {
  Rng rng(1);
  VitConfig config = small_vit(3);
  config.patch = 5;
  EXPECT_THAT(error_of([&] { Vit(config, rng); }), HasSubstr("cannot be cut into patches of 5 x 5"));
  config = small_vit(3);
  config.heads = 3;
  EXPECT_THAT(error_of([&] { Vit(config, rng); }), HasSubstr("heads"));
  config = small_vit(3);
  config.positions = "sinusoid";
  EXPECT_THAT(error_of([&] { Vit(config, rng); }), HasSubstr("wanted learned or none"));
  config = small_vit(3);
  config.self_attention = "scaled_dot / lengths";
  EXPECT_NE(error_of([&] { Vit(config, rng); }), "no error");
  const Vit network(small_vit(3), rng);
  nn::Context infer;
  EXPECT_THAT(error_of([&] {
                network.logits(Var(Tensor::zeros({1, 8, 8, 3})), infer);
              }),
              HasSubstr("[pictures, 8, 12, 3]"));
}

TEST(ResNet, EverySizeOfPictureAndDepthWorks) {
  Rng rng(1);
  nn::Context infer;
  const ResNet mnist({.classes = 10, .channels = 1, .depth = 14, .width = 8}, rng);
  EXPECT_EQ(mnist.features(Var(Tensor::zeros({2, 28, 28, 1})), infer).shape(), (Shape{2, 7, 7, 32}));
  EXPECT_EQ(mnist.logits(Var(Tensor::zeros({1, 1, 1, 1})), infer).shape(), (Shape{1, 10}));
  const ResNet cifar({.classes = 3, .gate = "se"}, rng);
  EXPECT_EQ(cifar.logits(Var(Tensor::zeros({1, 32, 32, 3})), infer).shape(), (Shape{1, 3}));
  EXPECT_EQ(ResNet({.classes = 10}, rng).parameter_count(), 272474) << "ResNet-20 of the paper: 0.27 M";
}

TEST(ResNet, SameBitsForAnyNumberOfThreads) {
  for (const char* gate : {"cbam", "sk"}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      Rng rng(2);
      const ResNet network({.classes = 4, .channels = 1, .depth = 8, .width = 8, .gate = gate}, rng);
      const Tensor images(Shape{21, 28, 28, 1});
      for (float& value : images.span()) value = rng.normal();
      const std::vector<int32_t> labels(21, 3);
      nn::Context train{.training = true};
      network.loss(Var(images), labels, 0, train).backward();
      std::vector<float> all;
      for (const auto& [name, parameter] : network.parameters()) {
        const std::vector<float> grad = parameter.grad().to_vector();
        all.insert(all.end(), grad.begin(), grad.end());
      }
      for (const auto& [name, buffer] : network.buffers()) {
        const std::vector<float> values = buffer.value().to_vector();
        all.insert(all.end(), values.begin(), values.end());
      }
      results.push_back(std::move(all));
    }
    set_num_threads(0);
    EXPECT_EQ(results[0], results[1]) << gate;
    EXPECT_EQ(results[0], results[2]) << gate;
  }
}

TEST(ResNet, NonsenseIsRefused) {
  Rng rng(1);
  EXPECT_THAT(error_of([&] { ResNet({.classes = 2, .depth = 9}, rng); }), HasSubstr("6 n + 2"));
  EXPECT_THAT(error_of([&] { ResNet({.classes = 2, .gate = "eca"}, rng); }),
              HasSubstr("gate 'eca', wanted none, se, cbam or sk"));
  EXPECT_THAT(error_of([&] { ResNet({.classes = 2, .gate = "se", .gate_kernel = 3}, rng); }),
              HasSubstr("gate_kernel applies to the gate cbam only; the gate is se"));
  EXPECT_THAT(error_of([&] { ResNet({.classes = 2, .gate = "sk", .gate_bias = false}, rng); }),
              HasSubstr("gate_bias applies to the gates se and cbam only"));
  EXPECT_THAT(error_of([&] { ResNet({.classes = 2, .gate = "cbam", .gate_kernel = 4}, rng); }),
              HasSubstr("wanted an odd number"));
  EXPECT_THAT(error_of([&] { ResNet({}, rng); }), HasSubstr("above 0"));
  const ResNet network({.classes = 2, .depth = 8}, rng);
  nn::Context infer;
  EXPECT_THAT(error_of([&] {
                network.logits(Var(Tensor::zeros({1, 4, 4, 1})), infer);
              }),
              HasSubstr("height, width, 3]"));
}

}  // namespace
}  // namespace fovea::models
