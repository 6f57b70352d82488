// The image classifier against PyTorch (tests/golden/make_image_classifier.py): loss, every gradient, the
// losses of ten steps of Adam, and what it says afterwards by its running moments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/parallel.h"
#include "io/safetensors.h"
#include "models/image_classifier.h"
#include "train/optimizer.h"

namespace fovea::models {
namespace {

using ::testing::HasSubstr;

TEST(ImageClassifier, EqualsPyTorchsLossGradientsAndTenStepsWithEveryGate) {
  const SafetensorsFile file(FOVEA_GOLDEN "/image_classifier.safetensors");
  for (const char* gate : {"none", "se", "cbam", "sk"}) {
    SCOPED_TRACE(gate);
    const std::string prefix = std::string(gate) + ".";
    const Var images(file->tensor(prefix + "images"));
    std::vector<int32_t> labels;
    for (const float label : file->read(prefix + "labels")) labels.push_back(static_cast<int32_t>(label));
    Rng rng(1);
    const ImageClassifier network(
        {.classes = 5, .channels = images.size(3), .depth = 8, .width = 4, .gate = gate, .reduction = 2},
        rng);
    nn::load_parameters(network, [&](std::string_view name) {
      // Running moments begin as they are made.
      if (name.ends_with("running_mean") || name.ends_with("running_var")) {
        for (const auto& [own, value] : network.buffers())
          if (own == name) return value.value();
      }
      return file->tensor(prefix + "weight." + std::string(name));
    });
    const std::vector<float> losses = file->read(prefix + "losses");
    train::Optimizer optimizer(network.parameters(), train::Adam{.learning_rate = 0.003});
    const nn::Context train{.training = true}, infer;
    for (size_t step = 0; step < losses.size(); ++step) {
      optimizer.clear_grad();
      const Var loss = network.loss(images, labels, 0.1f, train);
      loss.backward();
      EXPECT_NEAR(loss.value().item(), losses[step], 2e-5 * static_cast<double>(1 + 2 * step))
          << "step " << step;
      if (step == 0)
        for (const auto& [name, parameter] : network.parameters()) {
          const Tensor got = parameter.grad(), wanted = file->tensor(prefix + "grad." + name);
          ASSERT_TRUE(got.defined()) << name;
          for (int64_t e = 0; e < wanted.count(); ++e)
            ASSERT_NEAR(got.data()[e], wanted.data()[e], 2e-5) << name << " element " << e;
        }
      optimizer.step();
    }
    const std::vector<float> logits = file->read(prefix + "logits"),
                             got = network.logits(images, infer).value().to_vector();
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(got[i], logits[i], 2e-3) << "logit " << i;
  }
}

TEST(ImageClassifier, EverySizeOfPictureAndDepthWorks) {
  Rng rng(1);
  const nn::Context infer;
  const ImageClassifier mnist({.classes = 10, .channels = 1, .depth = 14, .width = 8}, rng);
  EXPECT_EQ(mnist.features(Var(Tensor::zeros({2, 28, 28, 1})), infer).shape(), (Shape{2, 7, 7, 32}));
  EXPECT_EQ(mnist.logits(Var(Tensor::zeros({1, 1, 1, 1})), infer).shape(), (Shape{1, 10}));
  const ImageClassifier cifar({.classes = 3, .gate = "se"}, rng);
  EXPECT_EQ(cifar.logits(Var(Tensor::zeros({1, 32, 32, 3})), infer).shape(), (Shape{1, 3}));
  EXPECT_EQ(ImageClassifier({.classes = 10}, rng).parameter_count(), 272474)
      << "ResNet-20 of the paper: 0.27 M";
}

TEST(ImageClassifier, SameBitsForAnyNumberOfThreads) {
  for (const char* gate : {"cbam", "sk"}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      Rng rng(2);
      const ImageClassifier network({.classes = 4, .channels = 1, .depth = 8, .width = 8, .gate = gate}, rng);
      const Tensor images(Shape{21, 28, 28, 1});
      for (float& value : images.span()) value = rng.normal();
      const std::vector<int32_t> labels(21, 3);
      const nn::Context train{.training = true};
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

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ImageClassifier, NonsenseIsRefused) {
  Rng rng(1);
  EXPECT_THAT(message_of([&] { ImageClassifier({.classes = 2, .depth = 9}, rng); }), HasSubstr("6 n + 2"));
  EXPECT_THAT(message_of([&] { ImageClassifier({.classes = 2, .gate = "eca"}, rng); }),
              HasSubstr("gate 'eca', wanted none, se, cbam or sk"));
  EXPECT_THAT(message_of([&] { ImageClassifier({}, rng); }), HasSubstr("above 0"));
  const ImageClassifier network({.classes = 2, .depth = 8}, rng);
  const nn::Context infer;
  EXPECT_THAT(message_of([&] {
                network.logits(Var(Tensor::zeros({1, 4, 4, 1})), infer);
              }),
              HasSubstr("height, width, 3]"));
}

}  // namespace
}  // namespace fovea::models
