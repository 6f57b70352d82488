// Pictures as cameras and strangers make them: turned by EXIF, and far larger than what is wanted of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "data/exif.h"
#include "data/files.h"
#include "data/labelled_pictures.h"
#include "data/pictures.h"

namespace fovea::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Image decode(const std::string& bytes, const DecodeOptions& options = {}) {
  return decode_image(std::as_bytes(std::span(bytes)), "picture", options);
}

// Two rows of three: the red of each pixel is its number.
const std::vector<uint8_t> kSix{1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 5, 0, 0, 6, 0, 0};

std::vector<int> reds(const Image& image) {
  std::vector<int> all;
  for (size_t i = 0; i < image.pixels.size(); i += 3) all.push_back(image.pixels[i]);
  return all;
}

TEST(Upright, EveryOrientationIsTurnedAsExifHasIt) {
  // What is stored as 1 2 3 / 4 5 6, and how it is to be seen.
  const std::vector<std::vector<int>> wanted{{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                             {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                             {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  const std::string png = png_bytes(2, 3, kSix);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool big : {true, false}) {
      const Image image = decode(png_with_exif(png, exif_bytes(orientation, big)));
      EXPECT_EQ(reds(image), wanted[static_cast<size_t>(orientation - 1)]) << orientation;
      EXPECT_EQ(image.height, orientation >= 5 ? 3 : 2);
      EXPECT_EQ(image.width, orientation >= 5 ? 2 : 3);
    }
}

TEST(Upright, AJpegIsTurnedLikeItsPixels) {
  const Image image = smooth_picture(24, 40);
  const std::string jpeg = jpeg_bytes(image);
  const Image stored = decode(jpeg);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool big : {true, false}) {
      const Image turned = decode(jpeg_with_exif(jpeg, exif_bytes(orientation, big)));
      EXPECT_EQ(turned.pixels, upright(stored, orientation).pixels) << orientation;
      EXPECT_EQ(turned.height, orientation >= 5 ? 40 : 24);
    }
}

TEST(Upright, DamagedExifLeavesThePictureAsItIs) {
  const std::string jpeg = jpeg_bytes(smooth_picture(8, 12));
  const Image stored = decode(jpeg);
  const std::string exif = exif_bytes(6, false);
  ASSERT_NE(decode(jpeg_with_exif(jpeg, exif)).height, stored.height);
  // Cut anywhere before the orientation has been read in full, it says nothing.
  for (size_t size = 0; size < exif.size() - 4; ++size)
    EXPECT_EQ(decode(jpeg_with_exif(jpeg, exif.substr(0, size))).pixels, stored.pixels) << size;
  for (const int orientation : {0, 9, 255, 65535})
    EXPECT_EQ(decode(jpeg_with_exif(jpeg, exif_bytes(orientation, true))).pixels, stored.pixels);
  // Places outside, in a directory that would have 65 535 entries.
  std::string far = exif;
  for (size_t i = 4; i < 8; ++i) far[i] = '\xFF';
  EXPECT_EQ(decode(jpeg_with_exif(jpeg, far)).pixels, stored.pixels);
  std::string many = exif_bytes(6, false);
  many[8] = many[9] = '\xFF';
  EXPECT_EQ(decode(jpeg_with_exif(jpeg, many)).height, 12);
}

TEST(Shrinking, EveryPixelIsTheMeanOfThoseItStandsFor) {
  // 5 x 7 by a factor of 2: the last column and row stand for fewer.
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 35; ++i) pixels.insert(pixels.end(), {static_cast<uint8_t>(7 * i), 0, 255});
  const Image small = decode(png_bytes(5, 7, pixels), {.cover_height = 2, .cover_width = 3});
  ASSERT_EQ(small.height, 3);
  ASSERT_EQ(small.width, 4);
  EXPECT_THAT(reds(small), ElementsAre(28, 42, 56, 67, 126, 140, 154, 165, 200, 214, 228, 238));
  for (size_t i = 0; i < small.pixels.size(); i += 3) EXPECT_EQ(small.pixels[i + 2], 255);
}

TEST(Shrinking, JpegPngAndATurnedPictureLookTheSame) {
  const Image image = smooth_picture(400, 640);
  const DecodeOptions options{.cover_height = 30, .cover_width = 40};
  const auto seen = [](const Image& small) { return resize_and_crop(to_floats(small), 30, 40).to_vector(); };
  const Image png = decode(png_bytes(400, 640, image.pixels), options);
  EXPECT_EQ(png.height, 31);  // 400 by 13
  const std::vector<float> wanted = seen(png);
  const std::string jpeg = jpeg_bytes(image);
  for (const std::string& bytes : {jpeg, jpeg_bytes(image, {.progressive = true})}) {
    const Image small = decode(bytes, options);
    EXPECT_EQ(small.height, 50);  // libjpeg shrinks by 8
    const std::vector<float> got = seen(small);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 0.04);
  }
  const Image turned =
      decode(jpeg_with_exif(jpeg, exif_bytes(6, true)), {.cover_height = 40, .cover_width = 30});
  EXPECT_EQ(turned.height, 80);
  EXPECT_EQ(turned.width, 50);
}

// Kilobytes, by a field of /proc/self/status; 0 where there is none.
int64_t memory_field(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::stoll(line.substr(name.size() + 1));
  return 0;
}

TEST(Shrinking, ALargePictureTakesLittleMemory) {
  const TestFolder folder;
  const std::string path = folder.write("large.png", plain_png(8192, 8192, 100));
  EXPECT_LT(std::filesystem::file_size(path), 100'000u);
  read_picture_as(path, {64, 64, 3});  // libraries load
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
  const int64_t before = memory_field("VmRSS");
  if (before == 0 || memory_field("VmHWM") > before + 8 * 1024)
    GTEST_SKIP() << "the peak cannot be reset here";
  const std::vector<uint8_t> pixels = read_picture_as(path, {64, 64, 3});
  EXPECT_LT(memory_field("VmHWM") - before, 16 * 1024);
  for (const uint8_t value : pixels) ASSERT_EQ(value, 100);
}

TEST(Shrinking, WhatCannotBeReadRowByRowHasASmallerBound) {
  const TestFolder folder;
  const std::string path = folder.write("woven.png", plain_png(8192, 8192, 100, true));
  EXPECT_EQ(
      complaint(folder, [&] { read_image(path); }),
      "woven.png: 8192 x 8192 pixels, wanted at most 33554432 of an interlaced PNG or a progressive JPEG");
}

TEST(Shrinking, AThreadOfAPictureIsUsable) {
  const TestFolder folder;
  const std::string path = folder.write("thread.png", plain_png(1'000'000, 1, 7));
  EXPECT_EQ(read_picture_as(path, {64, 64, 1}), std::vector<uint8_t>(64 * 64, 7));
  const std::string longer = folder.write("longer.png", plain_png(1'000'001, 1, 7));
  EXPECT_THAT(complaint(folder,
                        [&] {
                          read_picture_as(longer, {64, 64, 1});
                        }),
              StartsWith("longer.png: damaged PNG"));
}

TEST(ResizeAndCrop, IsTheMiddleOfTheResizedPicture) {
  for (const auto& [height, width] :
       std::vector<std::pair<int64_t, int64_t>>{{9, 17}, {31, 12}, {40, 40}, {3, 90}}) {
    const Tensor image = to_floats(smooth_picture(height, width));
    const double scale = std::max(16.0 / static_cast<double>(height), 12.0 / static_cast<double>(width));
    const auto side = [&](int64_t size, int64_t least) {
      return std::max<int64_t>(least, std::llround(scale * static_cast<double>(size)));
    };
    EXPECT_EQ(resize_and_crop(image, 16, 12).to_vector(),
              centre_crop(resize(image, side(height, 16), side(width, 12)), 16, 12).to_vector());
  }
}

// A tar as `tar -cf` writes it, of one file after the other.
std::string tar_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string tar;
  for (const auto& [name, content] : files) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    char size[12];
    std::snprintf(size, sizeof size, "%011zo", content.size());
    header.replace(124, 11, size);
    header.replace(148, 8, "        ");
    header[156] = name.ends_with('/') ? '5' : '0';
    header.replace(257, 5, "ustar");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    header.replace(148, 7, std::string(digits, 7));
    tar += header + content + std::string((512 - content.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

TEST(PicturesInATar, AreThoseOfTheFolders) {
  const TestFolder folder;
  const std::string dark = plain_png(9, 9, 10), bright = plain_png(20, 12, 90),
                    jpeg = jpeg_bytes(smooth_picture(16, 16));
  const std::string tar = folder.write("train.tar", tar_of({{"train/", ""},
                                                            {"train/sun/", ""},
                                                            {"train/sun/b.png", bright},
                                                            {"train/sun/notes.txt", "no picture"},
                                                            {"train/sun/._b.png", "no picture either"},
                                                            {"train/night/z.PNG", dark},
                                                            {"train/sun/a.jpg", jpeg}}));
  for (const char* name : {"train", "train/sun", "train/night"})
    std::filesystem::create_directory(folder.path(name));
  folder.write("train/sun/b.png", bright);
  folder.write("train/night/z.PNG", dark);
  folder.write("train/sun/a.jpg", jpeg);
  const Pictures packed = read_pictures({tar}, 8), loose = read_pictures({folder.path("train")}, 8);
  EXPECT_THAT(packed.classes, ElementsAre("night", "sun"));
  EXPECT_THAT(packed.labels, ElementsAre(0, 1, 1));
  EXPECT_EQ(packed.pixels, loose.pixels);
  EXPECT_EQ(packed.classes, loose.classes);
  EXPECT_EQ(packed.labels, loose.labels);
  const Pictures valid = read_pictures_as({tar}, {8, 8, 1}, {"dawn", "night", "sun"});
  EXPECT_THAT(valid.labels, ElementsAre(1, 2, 2));
}

TEST(PicturesInATar, WhatIsNoCollectionIsRefused) {
  const TestFolder folder;
  const std::string png = plain_png(9, 9, 10);
  const auto refused = [&](const std::string& name, const std::string& bytes) {
    const std::string path = folder.write(name, bytes);
    return complaint(folder, [&] { read_pictures({path}, 8); });
  };
  EXPECT_EQ(refused("a.tar", tar_of({{"a.png", png}})),
            "a.tar: 'a.png' lies in no folder; wanted a folder for every class, with its pictures");
  EXPECT_EQ(refused("b.tar", tar_of({{"train/x/a.png", png}, {"test/x/a.png", png}})),
            "b.tar: pictures in 'train/' and in 'test/', wanted the folders of the classes side by side");
  EXPECT_THAT(refused("c.tar", tar_of({{"x/a.txt", "text"}})), StartsWith("c.tar contains no pictures"));
  EXPECT_EQ(refused("d.tar", tar_of({{"x/a.png", png.substr(0, 40)}})).find("d.tar, x/a.png: damaged PNG"),
            0u);
  EXPECT_THAT(refused("e.idx", std::string("\0\0\x08\x03", 4) + std::string(20, '\0')),
              HasSubstr("e.idx: an IDX file; give"));
  EXPECT_THAT(refused("f.tar.gz", "\x1f\x8b rest"), HasSubstr("wanted a plain tar"));
}

}  // namespace
}  // namespace fovea::data
