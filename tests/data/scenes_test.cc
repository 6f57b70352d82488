#include "data/scenes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "data/png_writer.h"

namespace fovea::data {
namespace {

using testing::HasSubstr;

// White squares of 10 x 10 pixels, each with its number as the grey of one pixel.
Pictures squares(int count) {
  Pictures pictures{.form = {10, 10, 1}, .pixels = {}, .labels = {}, .classes = {"a", "b"}};
  for (int i = 0; i < count; ++i) {
    pictures.pixels.insert(pictures.pixels.end(), 100, uint8_t{200});
    pictures.pixels[static_cast<size_t>(100 * i)] = static_cast<uint8_t>(i);
    pictures.labels.push_back(i % 2);
  }
  return pictures;
}

int64_t sum(std::span<const uint8_t> pixels) {
  return std::accumulate(pixels.begin(), pixels.end(), int64_t{0});
}

TEST(Scenes, PlainIsThePictureAndTranslatedIsItElsewhere) {
  const Pictures pictures = squares(6);
  EXPECT_EQ(make_scenes(pictures, {}, 1).pixels, pictures.pixels);
  const Pictures moved = make_scenes(pictures, {.kind = SceneKind::translated, .size = 24}, 1);
  EXPECT_EQ(moved.form.height, 24);
  EXPECT_EQ(moved.labels, pictures.labels);
  std::vector<int64_t> first_pixels;
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(sum(moved.picture(i)), sum(pictures.picture(i))) << "nothing is lost or added";
    const auto scene = moved.picture(i);
    first_pixels.push_back(std::find_if(scene.begin(), scene.end(), [](uint8_t v) { return v > 0; }) -
                           scene.begin());
  }
  std::sort(first_pixels.begin(), first_pixels.end());
  EXPECT_NE(first_pixels.front(), first_pixels.back()) << "places differ";
}

TEST(Scenes, ClutterIsAddedOverThePictureOrLiesBehindIt) {
  const Pictures pictures = squares(6);
  Scene scene{.kind = SceneKind::cluttered, .size = 12, .fragments = 40, .side = 5};
  const Pictures over = make_scenes(pictures, scene, 1);
  // 40 fragments cover a canvas of 12 x 12 many times: sums end at white.
  EXPECT_EQ(*std::max_element(over.pixels.begin(), over.pixels.end()), 255);
  scene.blended = false;
  const Pictures behind = make_scenes(pictures, scene, 1);
  for (int64_t i = 0; i < 6; ++i) {
    const auto picture = behind.picture(i);
    // The picture is whole: ten of its rows in a row.
    const auto row = pictures.picture(i).subspan(10, 10);
    EXPECT_NE(std::search(picture.begin(), picture.end(), row.begin(), row.end()), picture.end());
  }
  EXPECT_NE(over.pixels, behind.pixels);
}

TEST(Scenes, AreAFunctionOfTheSeedAndOfNothingElse) {
  const Pictures pictures = squares(40);
  const Scene scene{.kind = SceneKind::cluttered, .size = 20, .side = 4};
  std::vector<int64_t> chosen(40);
  std::iota(chosen.begin(), chosen.end(), 0);
  set_num_threads(1);
  const std::vector<float> alone = draw_scenes(pictures, chosen, scene, 5).to_vector();
  set_num_threads(3);
  EXPECT_EQ(draw_scenes(pictures, chosen, scene, 5).to_vector(), alone);
  set_num_threads(0);
  EXPECT_NE(draw_scenes(pictures, chosen, scene, 6).to_vector(), alone);
  const Pictures bytes = make_scenes(pictures, scene, 5);
  EXPECT_EQ(to_values(bytes, 0, 40).to_vector(), alone) << "training and tests draw the same way";
}

TEST(Scenes, WhatDoesNotFitIsRefused) {
  const auto said = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(said([] {
                scene_form({.kind = SceneKind::translated, .size = 20}, {28, 28, 1});
              }),
              HasSubstr("wanted at least 28"));
  EXPECT_THAT(said([] {
                scene_form({.kind = SceneKind::cluttered, .size = 20}, {6, 6, 1});
              }),
              HasSubstr("do not fit"));
  EXPECT_THAT(said([] { scene_named("clutered"); }), HasSubstr("did you mean 'cluttered'"));
}

TEST(Png, WrittenPicturesAreReadBack) {
  std::vector<uint8_t> pixels(3 * 5 * 7);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(7 * i);
  for (const PictureForm form : {PictureForm{5, 7, 3}, PictureForm{5, 21, 1}}) {
    const std::string file = encode_png(pixels, form);
    EXPECT_EQ(decode_picture_as(std::as_bytes(std::span(file)), "a", form), pixels) << form.channels;
  }
}

}  // namespace
}  // namespace fovea::data
