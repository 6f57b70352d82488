#include "explain/film_strip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

FilmStrip three_frames() {
  return {.title = "positive, 90 %",
          .height = 6,
          .width = 8,
          .frames = std::vector<std::vector<uint8_t>>(3, std::vector<uint8_t>(144, 70)),
          .weights = {0.125f, 0.625f, 0.25f}};
}

TEST(FilmStrip, IsDrawnInEachFormatWithTheWeightOfEveryFrame) {
  EXPECT_THAT(draw(three_frames(), PictureFormat::png), StartsWith("\x89PNG"));
  EXPECT_THAT(draw(three_frames(), PictureFormat::pdf), StartsWith("%PDF"));
  const std::string svg = draw(three_frames(), PictureFormat::svg);
  for (const char* text : {"positive, 90 %", "0.62", "0.25"}) EXPECT_THAT(svg, HasSubstr(text));
}

TEST(FilmStrip, NegativeWeightsAreToldFromPositiveOnes) {
  FilmStrip strip = three_frames();
  EXPECT_THAT(draw(strip, PictureFormat::svg), testing::Not(HasSubstr("negative")));
  strip.weights[0] = -0.125f;
  EXPECT_THAT(draw(strip, PictureFormat::svg), HasSubstr("red: negative weights"));
}

TEST(FilmStrip, WrapsLongClips) {
  FilmStrip strip = three_frames();
  const std::string one_row = draw(strip, PictureFormat::png);
  strip.across = 2;
  EXPECT_NE(draw(strip, PictureFormat::png), one_row);
}

TEST(FilmStrip, SizesThatDoNotMatchAreRefused) {
  FilmStrip strip = three_frames();
  strip.weights.pop_back();
  EXPECT_THROW(draw(strip, PictureFormat::png), Error);
  strip = three_frames();
  strip.frames[1].pop_back();
  EXPECT_THROW(draw(strip, PictureFormat::png), Error);
}

}  // namespace
}  // namespace fovea
