#include "explain/heatmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

HeatMap alignment() {
  return {.title = "我喜欢食物",
          .rows = {"i", "like", "food"},
          .columns = {"我", "喜欢", "食物"},
          .row_count = 3,
          .column_count = 3,
          .weights = {0.9f, 0.1f, 0, 0.05f, 0.9f, 0.05f, 0, NAN, 1}};
}

TEST(Draw, WritesEachFormat) {
  EXPECT_THAT(draw(alignment(), PictureFormat::png), StartsWith("\x89PNG"));
  EXPECT_THAT(draw(alignment(), PictureFormat::svg), HasSubstr("<svg"));
  EXPECT_THAT(draw(alignment(), PictureFormat::pdf), StartsWith("%PDF"));
}

TEST(Draw, SeveralPanelsAndEmptyOnesWork) {
  const Figure figure{.title = "heads", .panels = {alignment(), HeatMap{}, alignment()}, .across = 2};
  EXPECT_THAT(draw(figure, PictureFormat::svg), HasSubstr("</svg>"));
  EXPECT_THAT(draw(Figure{}, PictureFormat::png), StartsWith("\x89PNG"));
}

TEST(Draw, RefusesLabelsThatDoNotFit) {
  HeatMap map = alignment();
  map.rows.pop_back();
  EXPECT_THROW(draw(map, PictureFormat::svg), Error);
  map = alignment();
  map.weights.pop_back();
  EXPECT_THROW(draw(map, PictureFormat::svg), Error);
}

TEST(PictureFormat, NamesTheEndingsThatWork) {
  EXPECT_EQ(picture_format("a/b.svg"), PictureFormat::svg);
  try {
    picture_format("map.jpg");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("got the ending '.jpg', wanted .png, .svg or .pdf"));
  }
}

TEST(Shade, DarkensWithTheWeightAndAlignsWideLetters) {
  HeatMap map = alignment();
  std::swap(map.rows, map.columns);
  EXPECT_EQ(shade(map),
            "我喜欢食物\n"
            "      1 2 3\n"
            "  我|██    |\n"
            "喜欢|  ██  |\n"
            "食物|    ██|\n"
            "1 i  2 like  3 food\n");
}

}  // namespace
}  // namespace fovea
