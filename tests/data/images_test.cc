#include "data/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/files.h"
#include "data/pictures.h"

namespace fovea::data {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Image decode(const std::string& bytes, int64_t max_pixels = kMaxPixels) {
  return decode_image(std::as_bytes(std::span(bytes)), "picture", {.max_pixels = max_pixels});
}

std::string fault_of(const std::string& bytes, int64_t max_pixels = kMaxPixels) {
  try {
    decode(bytes, max_pixels);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

int largest_difference(const Image& a, const Image& b) {
  int largest = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i)
    largest = std::max(largest, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  return largest;
}

TEST(Jpeg, ColourProgressiveGreyAndInksAreRead) {
  const Image image = smooth_picture(37, 53);
  for (const JpegOptions options :
       {JpegOptions{}, JpegOptions{.progressive = true}, JpegOptions{.channels = 4}}) {
    const Image read = decode(jpeg_bytes(image, options));
    ASSERT_EQ(read.height, 37);
    ASSERT_EQ(read.width, 53);
    ASSERT_EQ(read.pixels.size(), image.pixels.size());
    EXPECT_LE(largest_difference(read, image), 12) << options.channels << options.progressive;
  }
  const Image grey = decode(jpeg_bytes(image, {.channels = 1}));
  for (size_t i = 0; i < grey.pixels.size(); i += 3) {
    EXPECT_EQ(grey.pixels[i], grey.pixels[i + 1]);
    EXPECT_NEAR(grey.pixels[i], image.pixels[i + 1], 8);
  }
}

TEST(Png, ColourGreyAndTransparentAreRead) {
  const Image image = smooth_picture(5, 7);
  EXPECT_EQ(decode(png_bytes(5, 7, image.pixels)).pixels, image.pixels);
  EXPECT_THAT(decode(png_bytes(1, 2, {10, 200}, PNG_FORMAT_GRAY)).pixels,
              ElementsAre(10, 10, 10, 200, 200, 200));
  EXPECT_THAT(decode(png_bytes(1, 2, {1, 2, 3, 255, 9, 9, 9, 0}, PNG_FORMAT_RGBA)).pixels,
              ElementsAre(1, 2, 3, 255, 255, 255));
}

TEST(DecodeImage, EveryCutIsOneLineThatNamesTheFile) {
  const Image image = smooth_picture(24, 24);
  for (const std::string& whole :
       {jpeg_bytes(image), jpeg_bytes(image, {.progressive = true}), png_bytes(24, 24, image.pixels)}) {
    ASSERT_EQ(fault_of(whole), "no error");
    // Without its end mark a picture still has all its pixels.
    const size_t end_mark = whole.starts_with("\x89PNG") ? 12 : 2;
    for (size_t size = 0; size < whole.size() - end_mark; ++size) {
      const std::string fault = fault_of(whole.substr(0, size));
      ASSERT_THAT(fault, AnyOf(StartsWith("picture: damaged"), StartsWith("picture: neither JPEG nor PNG")))
          << size << " of " << whole.size() << " bytes";
      ASSERT_EQ(fault.find('\n'), std::string::npos);
    }
  }
}

TEST(DecodeImage, ChangedBytesNeverCrash) {
  const Image image = smooth_picture(16, 16);
  Rng rng(5);
  for (std::string bytes :
       {jpeg_bytes(image), jpeg_bytes(image, {.progressive = true}), png_bytes(16, 16, image.pixels)}) {
    const std::string whole = bytes;
    for (int i = 0; i < 500; ++i) {
      bytes = whole;
      for (int change = 0; change < 3; ++change)
        bytes[static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())))] =
            static_cast<char>(rng.bits());
      fault_of(bytes, 1 << 20);
    }
  }
}

TEST(DecodeImage, SizesAreCheckedBeforeMemoryIsTaken) {
  std::string jpeg = jpeg_bytes(smooth_picture(8, 8));
  // Height and width follow the marker of the frame, its length and its precision.
  const size_t frame = jpeg.find("\xFF\xC0");
  for (size_t i = 0; i < 4; ++i) jpeg[frame + 5 + i] = '\xF0';
  EXPECT_THAT(fault_of(jpeg), HasSubstr("61680 x 61680 pixels, wanted at most 67108864 in all"));
  EXPECT_THAT(fault_of(png_bytes(8, 8, smooth_picture(8, 8).pixels), 63), HasSubstr("8 x 8 pixels"));
}

TEST(DecodeImage, OtherBytesAreRefused) {
  EXPECT_EQ(fault_of(""), "picture: neither JPEG nor PNG but empty");
  EXPECT_EQ(fault_of("hello"), "picture: neither JPEG nor PNG");
  EXPECT_EQ(fault_of("GIF89a"), "picture: neither JPEG nor PNG but GIF; convert it first");
  EXPECT_EQ(fault_of("RIFF....WEBPVP8 "), "picture: neither JPEG nor PNG but WebP; convert it first");
  EXPECT_EQ(fault_of("RIFF...."), "picture: neither JPEG nor PNG");
  EXPECT_EQ(fault_of("....ftypheic"), "picture: neither JPEG nor PNG but HEIC or MP4; convert it first");
  EXPECT_EQ(fault_of("BM1234"), "picture: neither JPEG nor PNG but BMP; convert it first");
}

TEST(ReadImage, NamesTheFile) {
  const TestFolder folder;
  const Image image = smooth_picture(4, 6);
  EXPECT_EQ(read_image(folder.write("a.png", png_bytes(4, 6, image.pixels))).pixels, image.pixels);
  EXPECT_THAT(complaint(folder, [&] { read_image(folder.path("none.png")); }),
              StartsWith("cannot open none.png: "));
  const std::string text = folder.write("text.jpg", "no picture");
  EXPECT_EQ(complaint(folder, [&] { read_image(text); }), "text.jpg: neither JPEG nor PNG");
}

TEST(ToFloats, ScalesAndShifts) {
  const Image image{1, 1, {0, 255, 51}};
  EXPECT_THAT(to_floats(image).to_vector(), ElementsAre(0, 1, ::testing::FloatNear(0.2f, 1e-7f)));
  EXPECT_THAT(to_floats(image, 2.0f / 255, -1).to_vector(),
              ElementsAre(-1, 1, ::testing::FloatNear(-0.6f, 1e-6f)));
}

// PyTorch 2.13: F.interpolate(torch.arange(6.)[None, None].reshape(1, 1, 2, 3), (3, 4), mode="bilinear").
TEST(Resize, IsPyTorchsBilinearBetweenCentres) {
  const Tensor image = Tensor::from({0, 1, 2, 3, 4, 5}, {2, 3, 1});
  const std::vector<float> wanted{0, 0.625f, 1.375f, 2, 1.5f, 2.125f, 2.875f, 3.5f, 3, 3.625f, 4.375f, 5};
  const std::vector<float> got = resize(image, 3, 4).to_vector();
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
  EXPECT_EQ(resize(image, 2, 3).to_vector(), image.to_vector());
  EXPECT_THAT(resize(image, 1, 1).to_vector(), ElementsAre(2.5f));
}

TEST(Resize, TheShorterSideIsAsAskedFor) {
  EXPECT_EQ(resize_shortest(Tensor::zeros({10, 21, 3}), 5).shape(), (Shape{5, 11, 3}));
  EXPECT_EQ(resize_shortest(Tensor::zeros({30, 10, 1}), 20).shape(), (Shape{60, 20, 1}));
  EXPECT_THROW(resize(Tensor::zeros({2, 2, 1}), 0, 3), Error);
}

TEST(CentreCrop, TakesTheMiddle) {
  std::vector<float> values(20);
  for (size_t i = 0; i < 20; ++i) values[i] = static_cast<float>(i);
  const Tensor image = Tensor::from(values, {4, 5, 1});
  EXPECT_THAT(centre_crop(image, 2, 3).to_vector(), ElementsAre(6, 7, 8, 11, 12, 13));
  EXPECT_THAT(centre_crop(image, 1, 2).to_vector(), ElementsAre(6, 7));
  EXPECT_THROW(centre_crop(image, 5, 5), Error);
}

TEST(RandomCrop, EveryPlaceAndBothSidesComeUpAndTheSameDrawsGiveTheSame) {
  const Tensor image = Tensor::from({1, 2, 3, 4}, {2, 2, 1});
  Rng rng(3);
  std::map<std::vector<float>, int> seen;
  for (int i = 0; i < 4000; ++i)
    ++seen[random_crop(image, {.height = 2, .width = 2, .padding = 1}, rng).to_vector()];
  EXPECT_EQ(seen.size(), 18u) << "three rows, three columns, two sides";
  EXPECT_TRUE(seen.contains({1, 2, 3, 4}));
  EXPECT_TRUE(seen.contains({2, 1, 4, 3}));
  EXPECT_TRUE(seen.contains({0, 0, 0, 1}));
  for (const auto& [crop, count] : seen) EXPECT_NEAR(count, 4000 / 18.0, 80);
  Rng first(9), second(9), third(9);
  const RandomCrop options{.height = 2, .width = 1, .flip = false};
  EXPECT_EQ(random_crop(image, options, first).to_vector(), random_crop(image, options, second).to_vector());
  random_crop(image, {.height = 2, .width = 2}, third);
  EXPECT_EQ(first.state(), third.state()) << "as many draws whatever is asked for";
  EXPECT_THROW(random_crop(image, {.height = 3, .width = 2}, rng), Error);
}

TEST(ImageFolder, OneSubFolderIsOneClass) {
  const TestFolder folder;
  const std::string picture = png_bytes(1, 1, {1, 2, 3});
  for (const char* name : {"dogs", "cats", ".cache"}) std::filesystem::create_directory(folder.path(name));
  folder.write("dogs/2.PNG", picture);
  folder.write("dogs/1.jpeg", picture);
  folder.write("dogs/notes.txt", "");
  folder.write("dogs/.hidden.png", "");
  folder.write("cats/a.jpg", picture);
  folder.write("readme.txt", "");
  const ImageFolder found = list_image_folder(folder.path(""));
  EXPECT_THAT(found.classes, ElementsAre("cats", "dogs"));
  ASSERT_EQ(found.items.size(), 3u);
  EXPECT_EQ(found.items[0].path.filename(), "a.jpg");
  EXPECT_EQ(found.items[1].path.filename(), "1.jpeg");
  EXPECT_EQ(found.items[2].label, 1);
  EXPECT_EQ(found.ignored, 1);
  folder.write("dogs/scan.webp", "");
  std::filesystem::create_directory(folder.path("dogs/more"));
  EXPECT_EQ(list_image_folder(folder.path("")).ignored, 3);
}

TEST(ImageFolder, WhatIsNoCollectionIsRefused) {
  const TestFolder folder;
  EXPECT_THAT(complaint(folder, [&] { list_image_folder(folder.path("none")); }),
              HasSubstr("cannot read the folder"));
  EXPECT_THAT(complaint(folder, [&] { list_image_folder(folder.path("")); }), HasSubstr("no sub-folders"));
  std::filesystem::create_directory(folder.path("empty"));
  EXPECT_THAT(complaint(folder, [&] { list_image_folder(folder.path("")); }), HasSubstr("no pictures"));
}

}  // namespace
}  // namespace fovea::data
