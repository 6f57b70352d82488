#include "explain/overlay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Overlay grey(int64_t height, int64_t width) {
  return {.title = "a picture",
          .height = height,
          .width = width,
          .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * height * width), 90)};
}

TEST(Overlay, IsDrawnInEachFormatWithAndWithoutWeights) {
  Overlay seen = grey(6, 9);
  seen.rows = 2;
  seen.columns = 3;
  seen.weights = {0, 0.2f, 0.4f, 0.1f, 1, 0};
  const OverlayFigure figure{.title = "cat, 90.0 %", .panels = {grey(6, 9), seen}};
  EXPECT_THAT(draw(figure, PictureFormat::png), StartsWith("\x89PNG"));
  EXPECT_THAT(draw(figure, PictureFormat::svg), HasSubstr("<svg"));
  EXPECT_THAT(draw(figure, PictureFormat::pdf), StartsWith("%PDF"));
  EXPECT_NE(draw(OverlayFigure{"", {seen}}, PictureFormat::png),
            draw(OverlayFigure{"", {grey(6, 9)}}, PictureFormat::png));
}

Overlay flat(uint8_t brightness, std::vector<float> weights) {
  Overlay overlay{
      .title = "", .height = 8, .width = 8, .pixels = std::vector<uint8_t>(8 * 8 * 3, brightness)};
  overlay.rows = overlay.weights.empty() && weights.empty() ? 0 : 1;
  overlay.columns = static_cast<int64_t>(weights.size());
  overlay.weights = std::move(weights);
  return overlay;
}

// Orange has more red than blue, blue more blue than red: on any ground.
TEST(Overlay, HeatShowsOnBlackAndOnWhite) {
  for (const uint8_t ground : {uint8_t{0}, uint8_t{90}, uint8_t{255}}) {
    SCOPED_TRACE(int{ground});
    const std::vector<uint32_t> pixels = overlay_pixels(flat(ground, {0.1f, 0.9f}));
    const auto warmth = [&](size_t at) {
      return static_cast<int>(pixels[at] >> 16 & 255) - static_cast<int>(pixels[at] & 255);
    };
    EXPECT_LT(warmth(0), -60);
    EXPECT_GT(warmth(7), 60);
  }
}

TEST(Overlay, ThePictureShowsThroughTheHeat) {
  Overlay overlay = flat(0, {0.1f, 0.9f});
  for (size_t i = 0; i < overlay.pixels.size() / 2; ++i) overlay.pixels[i] = 255;
  const std::vector<uint32_t> pixels = overlay_pixels(overlay);
  EXPECT_GT(static_cast<int>(pixels[0] >> 8 & 255), 50 + static_cast<int>(pixels[63 - 7] >> 8 & 255));
}

TEST(Overlay, AScaleNamesTheSmallestAndTheLargestWeight) {
  const std::string svg = draw(OverlayFigure{"", {flat(0, {0.125f, 0.75f})}}, PictureFormat::svg);
  EXPECT_THAT(svg, HasSubstr(">0.12</text>"));
  EXPECT_THAT(svg, HasSubstr(">0.75</text>"));
  EXPECT_THAT(draw(OverlayFigure{"", {flat(0, {0.5f, 0.5f})}}, PictureFormat::svg),
              HasSubstr(">0.5 everywhere</text>"));
}

TEST(Overlay, AScaleHasAsManyDigitsAsTellItsEndsApart) {
  const std::string svg = draw(OverlayFigure{"", {flat(0, {0.996f, 0.9991f})}}, PictureFormat::svg);
  EXPECT_THAT(svg, HasSubstr(">0.996</text>"));
  EXPECT_THAT(svg, HasSubstr(">0.999</text>"));
}

TEST(Overlay, RefusesSizesThatDoNotFit) {
  Overlay short_of_pixels = grey(4, 4);
  short_of_pixels.pixels.pop_back();
  EXPECT_THROW(draw(OverlayFigure{"", {short_of_pixels}}, PictureFormat::png), Error);
  Overlay short_of_weights = grey(4, 4);
  short_of_weights.rows = short_of_weights.columns = 2;
  EXPECT_THROW(draw(OverlayFigure{"", {short_of_weights}}, PictureFormat::png), Error);
}

}  // namespace
}  // namespace fovea
