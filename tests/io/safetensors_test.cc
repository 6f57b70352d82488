#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/error_of.h"
#include "io/temporary_directory.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::vector<std::byte> bytes_of(std::vector<T> values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST(Safetensors, ReadsWhatItWrote) {
  const TemporaryDirectory directory;
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6}, bias = {-1, 0.5}, scalar = {7};
  save_safetensors(
      directory / "model.safetensors",
      {TensorToWrite::floats("layer.weight", {2, 3}, weight), TensorToWrite::floats("layer.bias", {2}, bias),
       TensorToWrite::floats("scale", {}, scalar), TensorToWrite::floats("nothing", {0, 4}, {})},
      {{"format", "pt"}, {"step", "12"}});
  const SafetensorsFile file(directory / "model.safetensors");
  EXPECT_EQ(file->entries().size(), 4u);
  EXPECT_EQ(file->read("layer.weight"), weight);
  EXPECT_EQ(file->read("layer.bias"), bias);
  EXPECT_EQ(file->read("scale"), scalar);
  EXPECT_EQ(file->read("nothing"), std::vector<float>());
  EXPECT_EQ(file->entry("layer.weight").shape, (Shape{2, 3}));
  EXPECT_EQ(file->entry("nothing").shape, (Shape{0, 4}));
  EXPECT_EQ(file->metadata().at("step"), "12");
}

TEST(Safetensors, SameContentGivesTheSameBytesInAnyOrder) {
  const TemporaryDirectory directory;
  const std::vector<float> a = {1}, b = {2, 3};
  save_safetensors(directory / "one",
                   {TensorToWrite::floats("a", {1}, a), TensorToWrite::floats("b", {2}, b)});
  save_safetensors(directory / "two",
                   {TensorToWrite::floats("b", {2}, b), TensorToWrite::floats("a", {1}, a)});
  EXPECT_EQ(read_text(directory / "one"), read_text(directory / "two"));
}

TEST(Safetensors, LooksAsTheFormatSays) {
  const TemporaryDirectory directory;
  const std::vector<float> a = {1};
  save_safetensors(directory / "file", {TensorToWrite::floats("a", {1}, a)}, {{"k", "v"}});
  const std::string text = read_text(directory / "file");
  std::string header = R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(text.substr(8), header + std::string("\0\0\x80\x3f", 4));
  EXPECT_EQ(static_cast<unsigned char>(text[0]), header.size());
}

TEST(Safetensors, ConvertsEveryNumberToFloat) {
  const auto convert = [](Dtype dtype, const std::vector<std::byte>& bytes) {
    std::vector<float> out(bytes.size() / static_cast<size_t>(dtype_size(dtype)));
    convert_to_float(dtype, bytes, out);
    return out;
  };
  EXPECT_THAT(convert(Dtype::f64, bytes_of<double>({0.1, -3})), ElementsAre(0.1f, -3.f));
  EXPECT_THAT(convert(Dtype::i64, bytes_of<int64_t>({-5, 1ll << 40})), ElementsAre(-5.f, 0x1p40f));
  EXPECT_THAT(convert(Dtype::u64, bytes_of<uint64_t>({~0ull})), ElementsAre(0x1p64f));
  EXPECT_THAT(convert(Dtype::i32, bytes_of<int32_t>({-5, 9})), ElementsAre(-5.f, 9.f));
  EXPECT_THAT(convert(Dtype::u32, bytes_of<uint32_t>({4000000000u})), ElementsAre(4e9f));
  EXPECT_THAT(convert(Dtype::i16, bytes_of<int16_t>({-5})), ElementsAre(-5.f));
  EXPECT_THAT(convert(Dtype::u16, bytes_of<uint16_t>({65535})), ElementsAre(65535.f));
  EXPECT_THAT(convert(Dtype::i8, bytes_of<int8_t>({-128})), ElementsAre(-128.f));
  EXPECT_THAT(convert(Dtype::u8, bytes_of<uint8_t>({255})), ElementsAre(255.f));
  EXPECT_THAT(convert(Dtype::boolean, bytes_of<uint8_t>({0, 1, 2})), ElementsAre(0.f, 1.f, 1.f));
  EXPECT_THAT(convert(Dtype::bf16, bytes_of<uint16_t>({0x3F80, 0xC040})), ElementsAre(1.f, -3.f));
  EXPECT_THAT(
      convert(Dtype::f16, bytes_of<uint16_t>({0x3C00, 0xC200, 0x0001, 0x83FF, 0x7BFF, 0x7C00, 0x8000})),
      ElementsAre(1.f, -3.f, 0x1p-24f, -1023 * 0x1p-24f, 65504.f, INFINITY, -0.f));
  EXPECT_TRUE(std::isnan(convert(Dtype::f16, bytes_of<uint16_t>({0x7E00}))[0]));
  EXPECT_THROW(convert(Dtype::f8_e4m3, bytes_of<uint8_t>({1})), Error);
}

TEST(Safetensors, HalfAgreesWithArithmeticOnEveryFiniteValue) {
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    const int exponent = static_cast<int>(half >> 10);
    const float mantissa = static_cast<float>(half & 0x3FF) / 1024;
    const float wanted = exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
    float got;
    convert_to_float(Dtype::f16, bytes_of<uint16_t>({static_cast<uint16_t>(half)}), std::span(&got, 1));
    ASSERT_EQ(got, wanted) << half;
  }
}

TEST(Safetensors, MixedDtypesKeepTheirAlignment) {
  const TemporaryDirectory directory;
  const auto byte = bytes_of<uint8_t>({1, 2, 3});
  const auto wide = bytes_of<int64_t>({-7});
  save_safetensors(directory / "file", {{"a", Dtype::u8, {3}, byte}, {"b", Dtype::i64, {1}, wide}});
  const SafetensorsFile file(directory / "file");
  EXPECT_EQ(file->entries()[0].name, "b");
  EXPECT_THAT(file->read("b"), ElementsAre(-7.f));
  EXPECT_THAT(file->read("a"), ElementsAre(1.f, 2.f, 3.f));
}

TEST(Safetensors, MissingTensorGivesTheNearestName) {
  const TemporaryDirectory directory;
  const std::vector<float> a = {1};
  save_safetensors(directory / "file", {TensorToWrite::floats("encoder.weight", {1}, a)});
  const SafetensorsFile file(directory / "file");
  EXPECT_THAT(error_of([&] { (void)file->read("encoder.wieght"); }),
              HasSubstr("did you mean 'encoder.weight'?"));
  EXPECT_THAT(error_of([&] { (void)file->read("x"); }), HasSubstr("no tensor 'x' among its 1"));
}

TEST(Safetensors, WriterRefusesWhatItCouldNotRead) {
  const TemporaryDirectory directory;
  const std::vector<float> a = {1};
  const auto save = [&](std::vector<TensorToWrite> tensors) {
    return error_of([&] { save_safetensors(directory / "file", tensors); });
  };
  EXPECT_THAT(save({TensorToWrite::floats("a", {1}, a), TensorToWrite::floats("a", {1}, a)}),
              HasSubstr("two tensors named 'a'"));
  EXPECT_THAT(save({TensorToWrite::floats("__metadata__", {1}, a)}), HasSubstr("cannot be named"));
  EXPECT_THAT(save({TensorToWrite::floats("a", {2}, a)}), HasSubstr("wants 8 bytes, got 4"));
  EXPECT_THAT(save({TensorToWrite::floats("\xff", {1}, a)}), HasSubstr("no valid UTF-8"));
  EXPECT_EQ(entry_count(directory.path()), 0u);
}

// Writing to a mapped tensor changes this process's page alone; a page that was given back is the file's again.
TEST(Safetensors, MappedTensorsOfOneNameShareMemoryWhichTheLastGivesBack) {
  const TemporaryDirectory directory;
  const int64_t count = 1 << 16;
  const std::vector<float> ones(static_cast<size_t>(count), 1.0f);
  save_safetensors(directory / "m.safetensors",
                   {TensorToWrite::floats("a", {count}, ones), TensorToWrite::floats("b", {count}, ones)});
  const SafetensorsFile file(directory / "m.safetensors");
  const Tensor b = file.mapped("b");
  b.data()[0] = 7;
  {
    const Tensor first = file.mapped("a"), second = file.mapped("a");
    first.fill(2);
    EXPECT_EQ(second.data()[count / 2], 2);
  }
  EXPECT_EQ(file.mapped("a").data()[count / 2], 1);
  EXPECT_EQ(b.data()[0], 7) << "another tensor's page";
}

TEST(Safetensors, AFileIsUnmappedWithItsLastTensor) {
  const TemporaryDirectory directory;
  const auto path = directory / "unmapped.safetensors";
  const std::vector<float> a = {1, 2};
  save_safetensors(path, {TensorToWrite::floats("a", {2}, a)});
  const auto is_mapped = [&] {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line))
      if (line.find(path.filename().string()) != std::string::npos) return true;
    return false;
  };
  {
    Tensor last;
    {
      const SafetensorsFile file(path);
      last = file.mapped("a");
    }
    EXPECT_TRUE(is_mapped());
    EXPECT_EQ(last.data()[1], 2);
  }
  EXPECT_FALSE(is_mapped());
}

TEST(Safetensors, NamesAreAnyText) {
  const TemporaryDirectory directory;
  const std::vector<float> a = {1};
  const std::string name = "слой.\"вес\"\\\n権重";
  save_safetensors(directory / "file", {TensorToWrite::floats(name, {1}, a)});
  EXPECT_EQ(SafetensorsFile(directory / "file")->read(name), a);
}

}  // namespace
}  // namespace fovea
