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
