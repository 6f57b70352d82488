#include "models/mobilenet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/ops.h"
#include "data/files.h"
#include "io/safetensors.h"

namespace fovea::models {
namespace {

using ::testing::HasSubstr;

// The picture of tests/golden/make_mobilenet.py.
Var picture(int64_t size) {
  const Tensor image(Shape{1, size, size, 3});
  float* pixel = image.data();
  for (int64_t h = 0; h < size; ++h)
    for (int64_t w = 0; w < size; ++w)
      for (int64_t c = 0; c < 3; ++c)
        *pixel++ = static_cast<float>((h * 7 + w * 3 + c * 41 + h * w / 9) % 256) / 127.5f - 1;
  return Var(image);
}

void expect_golden(const Tensor& got, const std::string& name) {
  const SafetensorsFile file(FOVEA_GOLDEN "/mobilenet.safetensors");
  ASSERT_EQ(got.shape(), file->entry(name).shape) << name;
  const std::vector<float> wanted = file->read(name), values = got.to_vector();
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(values[i], wanted[i], 2e-5) << name << " element " << i;
}

TEST(MobileNet, PublishedWeightsGivePyTorchsFeatures) {
  FOVEA_NEEDS_DATA(small, "mobilenet/mobilenet_v1_0.25_128.f32");
  FOVEA_NEEDS_DATA(large, "mobilenet/mobilenet_v1_1.00_224.f32");
  const auto stem = [](std::string path) { return path.substr(0, path.size() - 4); };
  Rng rng(1);
  const nn::Context infer;
  const MobileNet quarter({.width = 0.25f}, rng), begin({.width = 0.25f, .blocks = 5}, rng),
      whole({.blocks = 11}, rng);
  load_mobilenet(quarter, stem(small));
  load_mobilenet(begin, stem(small));
  load_mobilenet(whole, stem(large));
  expect_golden(quarter(picture(64), infer).value(), "0.25.13");
  expect_golden(begin(picture(33), infer).value(), "0.25.5");
  const Var features = whole(picture(64), infer);
  expect_golden(mean(reshape(features, {1, -1, 512}), 1).value(), "1.00.11.mean");
  EXPECT_EQ(whole(picture(224), infer).shape(), (Shape{1, 14, 14, 512}));
  // conv_pw_13 is not in the file.
  const MobileNet complete({}, rng);
  EXPECT_THAT(data::complaint({}, [&] { load_mobilenet(complete, stem(large)); }),
              HasSubstr("nor 'conv_pw_13/kernel'; keep fewer blocks"));
}

TEST(MobileNet, SizesAreThePapers) {
  Rng rng(1);
  const nn::Context infer;
  const MobileNet network({.width = 0.25f}, rng);
  EXPECT_EQ(network.out_channels(), 256);
  EXPECT_EQ(network(Var(Tensor::zeros({2, 65, 50, 3})), infer).shape(), (Shape{2, 3, 2, 256}));
  EXPECT_EQ(MobileNet({}, rng).parameter_count(), 3206976) << "4.2 M of the paper less the classifier's";
  EXPECT_THROW(MobileNet({.blocks = 14}, rng), Error);
  EXPECT_THROW(MobileNet({.width = 0}, rng), Error);
}

TEST(Manifest, LinesAreReadAndWhatDoesNotFitIsRefused) {
  const auto entries = parse_manifest("a/b\t2x3\t0\t24\nc\t4\t24\t16\n", 40, "m");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "a/b");
  EXPECT_EQ(entries[0].shape, (Shape{2, 3}));
  EXPECT_EQ(entries[1].offset, 24u);
  const auto fault = [](const std::string& text) {
    try {
      parse_manifest(text, 40, "m");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(fault("a\t2x3\t0\t24\nb\t4"), "m, line 2: wanted name, shape, first byte and bytes between tabs");
  for (const char* line :
       {"a\t2x3\t20\t24", "a\t2x3\t0\t20", "a\t2x\t0\t24", "a\t-2x-3\t0\t24", "a\t0x3\t0\t0",
        "a\t99999999999x99999999999\t0\t24", "a\t1x1x1x1x1x1x1x1x6\t0\t24", "a\t6\t18446744073709551615\t24"})
    EXPECT_EQ(fault(line), "m, line 1: 'a' does not lie within 40 bytes of floats") << line;
}

}  // namespace
}  // namespace fovea::models
