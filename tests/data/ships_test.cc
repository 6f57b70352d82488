// Ships and their label maps, the harbours that the program draws, and HRSC2016's files.
#include "data/ships.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numbers>

#include "base/error.h"
#include "base/error_of.h"
#include "data/bmp.h"
#include "data/harbour_scenes.h"
#include "data/hrsc.h"
#include "io/file.h"
#include "io/temporary_directory.h"
#include "tensor/allocator.h"

namespace fovea::data {
namespace {

using testing::HasSubstr;
constexpr double kPi = std::numbers::pi;

TEST(Ships, BowPointsWhereTheHeadingDoes) {
  const Ship right{50, 40, 20, 6, 0}, down{50, 40, 20, 6, kPi / 2};
  EXPECT_NEAR(bow(right).x, 60, 1e-9);
  EXPECT_NEAR(stern(right).x, 40, 1e-9);
  EXPECT_NEAR(bow(down).y, 50, 1e-9);
  EXPECT_TRUE(inside(hull(right), {50, 40}));
  EXPECT_FALSE(inside(hull(right), {59.5, 42.5})) << "the bow is tapered";
  EXPECT_TRUE(inside(corners(right), {59.5, 42.5}));
}

TEST(Ships, LabelsSayEndBodySeaAndLandAndTheNearestEnd) {
  ShipScene scene{.image = {64, 64, std::vector<uint8_t>(3 * 64 * 64)},
                  .ships = {{32, 32, 40, 12, 0}},
                  .land = std::vector<uint8_t>(64 * 64)};
  for (size_t i = 0; i < 64 * 8; ++i) scene.land[i] = 1;
  const ShipMaps maps = label_maps(scene, 2);
  ASSERT_EQ(maps.height, 32);
  const auto coarse = [&](int64_t x, int64_t y) {
    return static_cast<CoarseClass>(maps.coarse[size_t(y / 2 * 32 + x / 2)]);
  };
  const auto fine = [&](int64_t x, int64_t y) {
    return static_cast<FineClass>(maps.fine[size_t(y / 2 * 32 + x / 2)]);
  };
  EXPECT_EQ(coarse(48, 32), CoarseClass::end);  // 0.4 of the length to the right
  EXPECT_EQ(fine(48, 32), FineClass::bow);
  EXPECT_EQ(coarse(16, 32), CoarseClass::end);
  EXPECT_EQ(fine(16, 32), FineClass::stern);
  EXPECT_EQ(coarse(32, 32), CoarseClass::body);
  EXPECT_EQ(coarse(32, 50), CoarseClass::sea);
  EXPECT_EQ(coarse(32, 2), CoarseClass::land);
  EXPECT_EQ(fine(60, 60), FineClass::bow) << "a cell outside has the class of the nearest end";
  scene.ships.clear();
  EXPECT_EQ(label_maps(scene, 2).fine[0], kIgnoredLabel);
}

// Turning and then labelling is labelling and then turning.
TEST(Ships, ATurnMovesPictureAndShipsTogether) {
  const ShipScene scene = draw_harbour(1, 3, 64);
  ASSERT_FALSE(scene.ships.empty());
  const ShipMaps maps = label_maps(scene, 1);
  for (int turn = 0; turn < 8; ++turn) {
    const ShipScene to = turned(scene, turn);
    // The labels as a picture's red channel, turned as pixels.
    ShipScene painted{.image = {64, 64, std::vector<uint8_t>(3 * 64 * 64)}, .ships = {}, .land = {}};
    for (size_t i = 0; i < maps.coarse.size(); ++i)
      painted.image.pixels[3 * i] = static_cast<uint8_t>(maps.coarse[i] * 10 + maps.fine[i]);
    painted = turned(painted, turn);
    const ShipMaps got = label_maps(to, 1);
    int64_t differ = 0;
    for (size_t i = 0; i < got.coarse.size(); ++i)
      differ += got.coarse[i] * 10 + got.fine[i] != painted.image.pixels[3 * i];
    EXPECT_LE(differ, 4) << "turn " << turn << ": but for rounding on an edge";
  }
}

TEST(Ships, FittingKeepsTheShipsOnTheirPixels) {
  ShipScene scene{.image = {100, 200, std::vector<uint8_t>(3 * 100 * 200, 90)},
                  .ships = {{150, 50, 60, 20, 0}},
                  .land = {}};
  const ShipScene small = fitted(scene, 64);
  EXPECT_EQ(small.image.height, 64);
  EXPECT_NEAR(small.ships[0].x, 48, 1e-9);
  EXPECT_NEAR(small.ships[0].y, 16, 1e-9);
  EXPECT_NEAR(small.ships[0].length, 19.2, 1e-9);
}

TEST(Ships, FittingALargePictureTakesTheMeanOfItsPixelsAndLittleMemory) {
  Image board{1024, 2048, std::vector<uint8_t>(3 * 1024 * 2048)};
  for (size_t i = 0; i < board.pixels.size(); ++i)
    board.pixels[i] = (i / 3 + i / 3 / 2048) % 2 == 0 ? 200 : 0;
  const int64_t before = memory_use().live_bytes;
  reset_peak_memory();
  const Image small = fitted(board, 64);
  EXPECT_LT(memory_use().peak_bytes - before, 1 << 20);
  for (const uint8_t value : small.pixels) ASSERT_EQ(value, 100);
}

TEST(HarbourScenes, TheSameNumberGivesTheSameSceneAndAnotherAnother) {
  const ShipScene a = draw_harbour(5, 11, 96), b = draw_harbour(5, 11, 96), c = draw_harbour(5, 12, 96);
  EXPECT_EQ(a.image.pixels, b.image.pixels);
  EXPECT_EQ(a.land, b.land);
  EXPECT_NE(a.image.pixels, c.image.pixels);
  EXPECT_NE(draw_harbour(6, 11, 96).image.pixels, a.image.pixels);
}

TEST(HarbourScenes, ShipsLieWholeInThePictureOffLandAndApart) {
  int64_t ships = 0, with_land = 0, abreast = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    const ShipScene scene = draw_harbour(2, i, 128);
    ships += static_cast<int64_t>(scene.ships.size());
    with_land += std::count(scene.land.begin(), scene.land.end(), 1) > 0;
    for (size_t k = 0; k < scene.ships.size(); ++k) {
      const Ship& ship = scene.ships[k];
      for (const Point& p : corners(ship)) {
        EXPECT_TRUE(p.x >= 0 && p.y >= 0 && p.x <= 128 && p.y <= 128);
        EXPECT_EQ(scene.land[static_cast<size_t>(std::min(127.0, p.y)) * 128 +
                             static_cast<size_t>(std::min(127.0, p.x))],
                  0)
            << "scene " << i;
      }
      for (size_t other = 0; other < k; ++other) {
        EXPECT_FALSE(inside(corners(scene.ships[other]), {ship.x, ship.y})) << "scene " << i;
        const double apart = std::hypot(ship.x - scene.ships[other].x, ship.y - scene.ships[other].y);
        abreast += apart < ship.width + scene.ships[other].width;
      }
    }
  }
  EXPECT_GT(ships, 120);
  EXPECT_GT(with_land, 40);
  EXPECT_GT(abreast, 20) << "ships lie side by side";
}

const std::string kAnnotation = R"(<?xml version="1.0"?>
<HRSC_Image><Img_ID>100000001</Img_ID><!-- made up -->
<HRSC_Objects>
<HRSC_Object><Object_ID>1</Object_ID><mbox_cx>100.5</mbox_cx><mbox_cy>60</mbox_cy><mbox_w>80</mbox_w><mbox_h>20</mbox_h>
<mbox_ang>0</mbox_ang><seg_color></seg_color><header_x>62</header_x><header_y>61</header_y></HRSC_Object>
<HRSC_Object><mbox_cx>30</mbox_cx><mbox_cy>40</mbox_cy><mbox_w>10</mbox_w><mbox_h>50</mbox_h><mbox_ang> 0.0 </mbox_ang>
<header_x>31</header_x><header_y>64</header_y></HRSC_Object>
</HRSC_Objects></HRSC_Image>)";

TEST(Hrsc, TheHeaderSaysWhichEndIsTheBow) {
  const std::vector<Ship> ships = parse_hrsc(kAnnotation, "a.xml");
  ASSERT_EQ(ships.size(), 2u);
  EXPECT_NEAR(bow(ships[0]).x, 60.5, 1e-6);
  EXPECT_NEAR(ships[0].length, 80, 1e-9);
  EXPECT_NEAR(bow(ships[1]).y, 65, 1e-6) << "a box given across";
  EXPECT_NEAR(ships[1].length, 50, 1e-9);
  EXPECT_TRUE(parse_hrsc("<HRSC_Image><HRSC_Objects></HRSC_Objects></HRSC_Image>", "b").empty());
}

TEST(Hrsc, WhatIsDamagedIsOneLineThatNamesTheFile) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kAnnotation;
    text.replace(text.find(from), from.size(), to);
    return error_of([&] { parse_hrsc(text, "a.xml"); });
  };
  EXPECT_THAT(with("<mbox_w>80</mbox_w>", ""), HasSubstr("a.xml: object 1 lacks one of mbox_cx"));
  EXPECT_THAT(with("<mbox_w>80", "<mbox_w>wide"), HasSubstr("mbox_w is 'wide', wanted a number"));
  EXPECT_THAT(with("<mbox_w>80", "<mbox_w>nan"), HasSubstr("wanted a number"));
  EXPECT_THAT(with("<mbox_w>80", "<mbox_w>1e300"), HasSubstr("wanted a number from"));
  EXPECT_THAT(with("<mbox_w>80", "<mbox_w>-80"), HasSubstr("wanted more than 0"));
  EXPECT_THAT(with("</HRSC_Objects>", ""), HasSubstr("closes no element"));
  EXPECT_THAT(with("</HRSC_Object>\n<HRSC_Object>", "<HRSC_Object>"), HasSubstr("within another"));
  EXPECT_THAT(
      error_of([&] { parse_hrsc(kAnnotation.substr(0, kAnnotation.find("</HRSC_Objects>")), "a.xml"); }),
      HasSubstr("cut off within"));
  EXPECT_THAT(error_of([&] { parse_hrsc("<annotation></annotation>", "a.xml"); }),
              HasSubstr("no annotation of HRSC2016"));
  EXPECT_THAT(error_of([&] { parse_hrsc("", "a.xml"); }), HasSubstr("no annotation of HRSC2016"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<a>";
  EXPECT_THAT(error_of([&] { parse_hrsc(deep, "a.xml"); }), HasSubstr("within each other"));
}

// A bitmap of one colour but for a first pixel of red.
std::string bmp_of(int32_t width, int32_t height, int bits = 24) {
  const int line = (width * bits / 8 + 3) / 4 * 4;
  std::string bytes(static_cast<size_t>(54 + line * std::abs(height)), '\x40');
  std::memset(bytes.data(), 0, 54);
  const auto put = [&](size_t at, uint32_t value) { std::memcpy(bytes.data() + at, &value, 4); };
  bytes[0] = 'B';
  bytes[1] = 'M';
  put(10, 54);
  put(14, 40);
  put(18, static_cast<uint32_t>(width));
  put(22, static_cast<uint32_t>(height));
  put(26, 1u | static_cast<uint32_t>(bits) << 16);
  const size_t first = height > 0 ? 54 + static_cast<size_t>(line) * static_cast<size_t>(height - 1) : 54;
  bytes[first] = bytes[first + 1] = 0;
  bytes[first + 2] = '\x7f';
  return bytes;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Bmp, RowsFromBelowAndFromAboveAreRead) {
  for (const int bits : {24, 32})
    for (const int32_t height : {3, -3}) {
      const Image image = decode_bmp(bytes_of(bmp_of(5, height, bits)), "a.bmp");
      EXPECT_EQ(image.height, 3);
      EXPECT_EQ(image.width, 5);
      EXPECT_EQ(std::vector<uint8_t>(image.pixels.begin(), image.pixels.begin() + 4),
                (std::vector<uint8_t>{0x7f, 0, 0, 0x40}));
    }
  EXPECT_THAT(error_of([] { decode_bmp(bytes_of(bmp_of(5, 3, 8)), "a.bmp"); }), HasSubstr("8 bits a pixel"));
  EXPECT_THAT(error_of([] { decode_bmp(bytes_of(bmp_of(5, 3).substr(0, 80)), "a.bmp"); }),
              HasSubstr("cut off"));
  EXPECT_THAT(error_of([] {
                std::string huge = bmp_of(5, 3);
                huge[20] = huge[24] = '\x7f';
                decode_bmp(bytes_of(huge), "a.bmp");
              }),
              HasSubstr("wanted 1 to"));
  EXPECT_THAT(error_of([] { decode_bmp(bytes_of("BM"), "a.bmp"); }), HasSubstr("cut off"));
}

TEST(Hrsc, AFolderAsItIsDistributedIsRead) {
  const TemporaryDirectory directory;
  const std::filesystem::path folder = directory.path() / "hrsc";
  EXPECT_THAT(error_of([&] { read_hrsc(folder, 64); }), HasSubstr("no such folder"));
  make_directories(folder / "Annotations");
  make_directories(folder / "AllImages");
  EXPECT_THAT(error_of([&] { read_hrsc(folder, 64); }), HasSubstr("contains no .xml files"));
  write_atomically(folder / "Annotations" / "1.xml", kAnnotation);
  EXPECT_THAT(error_of([&] { read_hrsc(folder, 64); }), HasSubstr("no picture 1.bmp"));
  write_atomically(folder / "AllImages" / "1.bmp", bmp_of(200, 128));
  const std::vector<ShipScene> scenes = read_hrsc(folder, 64);
  ASSERT_EQ(scenes.size(), 1u);
  EXPECT_EQ(scenes[0].image.width, 64);
  EXPECT_NEAR(scenes[0].ships[0].length, 80 * 0.32, 1e-9);
}

}  // namespace
}  // namespace fovea::data
