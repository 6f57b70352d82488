// Every preset of `fovea train image` with every gate at the sizes people bring pictures to. Strided 1 x 1
// convolutions of few channels once wrote past their arrays at some of them.
#include <gtest/gtest.h>

#include <cmath>

#include "base/parallel.h"
#include "models/resnet.h"
#include "tasks/train_image.h"
#include "train/optimizer.h"

namespace fovea::tasks {
namespace {

// All weights and running moments after two steps of Adam on two random pictures.
std::vector<float> after_two_steps(const std::string& preset, int64_t size, const std::string& gate) {
  ImageTraining training;
  Json settings;
  apply_preset(preset, training, settings);
  Rng rng(5);
  const models::ResNet network({.classes = 3,
                                .depth = settings.at("depth").get<int64_t>(),
                                .width = settings.at("width").get<int64_t>(),
                                .gate = gate},
                               rng);
  const Tensor images(Shape{2, size, size, 3});
  for (float& value : images.span()) value = rng.normal();
  const std::vector<int32_t> labels{0, 2};
  train::Optimizer optimizer(network.parameters(), train::Adam{.learning_rate = training.learning_rate});
  nn::Context context{.training = true};
  for (int step = 0; step < 2; ++step) {
    optimizer.clear_grad();
    network.loss(Var(images), labels, 0, context).backward();
    optimizer.step();
  }
  std::vector<float> all;
  for (const auto& list : {network.parameters(), network.buffers()})
    for (const auto& [name, value] : list) {
      const std::vector<float> values = value.value().to_vector();
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

void expect_trains_alike_on_any_threads(const std::string& preset, std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes)
    for (const char* gate : {"none", "se", "cbam", "sk"}) {
      SCOPED_TRACE(message(preset, " ", gate, " at ", size));
      std::vector<std::vector<float>> results;
      for (const int threads : {1, 2, 3}) {
        set_num_threads(threads);
        results.push_back(after_two_steps(preset, size, gate));
      }
      set_num_threads(0);
      EXPECT_TRUE(
          std::all_of(results[0].begin(), results[0].end(), [](float x) { return std::isfinite(x); }));
      EXPECT_TRUE(results[0] == results[1]) << "two threads differ from one";
      EXPECT_TRUE(results[0] == results[2]) << "three threads differ from one";
    }
}

TEST(ImageSizes, TheTinyPresetTrainsAtEverySizeWithEveryGate) {
  expect_trains_alike_on_any_threads("tiny", {28, 32, 48, 56, 64, 72, 96, 128});
}

TEST(ImageSizes, TheSmallPresetTrainsAtEverySizeWithEveryGate) {
  expect_trains_alike_on_any_threads("small", {28, 32, 48, 64, 72});
}

// Deeper than small, of the same shapes.
TEST(ImageSizes, TheBasePresetTrainsWithEveryGate) {
  expect_trains_alike_on_any_threads("base", {28, 32});
}

}  // namespace
}  // namespace fovea::tasks
