#include "train/averaging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_directory.h"

namespace fovea::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Ema, FollowsTheWeights) {
  const Var weight(Tensor::from({0, 10}, {2}), true);
  Ema ema({{"w", weight}}, 0.75);
  weight.set_value(Tensor::from({4, 10}, {2}));
  ema.update();
  ema.swap();
  EXPECT_THAT(weight.value().to_vector(), ElementsAre(1, 10));
  ema.swap();
  EXPECT_THAT(weight.value().to_vector(), ElementsAre(4, 10));
}

TEST(Ema, StateContinues) {
  const TemporaryDirectory directory;
  const Var weight(Tensor::from({0}, {1}), true);
  Ema straight({{"w", weight}}, 0.9);
  weight.set_value(Tensor::from({1}, {1}));
  straight.update();
  save_safetensors(directory / "ema", straight.state());
  Ema resumed({{"w", weight}}, 0.9);
  resumed.load_state(*SafetensorsFile(directory / "ema"));
  weight.set_value(Tensor::from({2}, {1}));
  straight.update();
  resumed.update();
  straight.swap();
  const float wanted = weight.value().item();
  straight.swap();
  resumed.swap();
  EXPECT_EQ(weight.value().item(), wanted);
}

TEST(AverageCheckpoints, IsTheMeanNameByName) {
  const TemporaryDirectory directory;
  const std::vector<float> a = {1, 2}, b = {3, 6};
  save_safetensors(directory / "a", {TensorToWrite::floats("w", {2}, a)});
  save_safetensors(directory / "b", {TensorToWrite::floats("w", {2}, b)});
  const std::vector<std::filesystem::path> files = {directory / "a", directory / "b"};
  average_checkpoints(files, directory / "mean");
  EXPECT_THAT(SafetensorsFile(directory / "mean")->read("w"), ElementsAre(2, 4));
}

TEST(AverageCheckpoints, FilesThatDoNotFitAreRefused) {
  const TemporaryDirectory directory;
  const std::vector<float> a = {1, 2};
  save_safetensors(directory / "a", {TensorToWrite::floats("w", {2}, a)});
  save_safetensors(directory / "other_shape", {TensorToWrite::floats("w", {2, 1}, a)});
  save_safetensors(directory / "other_name", {TensorToWrite::floats("v", {2}, a)});
  const auto error_of = [&](const std::string& second) -> std::string {
    const std::vector<std::filesystem::path> files = {directory / "a", directory / second};
    try {
      average_checkpoints(files, directory / "mean");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("other_shape"), HasSubstr("has shape [2, 1], wanted [2]"));
  EXPECT_THAT(error_of("other_name"), HasSubstr("no tensor 'w'"));
  EXPECT_FALSE(std::filesystem::exists(directory / "mean"));
}

}  // namespace
}  // namespace fovea::train
