#include "explain/heatmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/error.h"
#include "explain/shades.h"

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

// The size a PNG file states.
std::pair<uint32_t, uint32_t> size_of_png(const std::string& png) {
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png.at(at + i));
    return value;
  };
  return {number(16), number(20)};
}

TEST(Draw, LongLabelsAreCutInsteadOfGrowingThePicture) {
  HeatMap map = alignment();
  map.rows[0] = map.columns[0] = std::string(6000, 'w');
  const auto [width, height] = size_of_png(draw(map, PictureFormat::png));
  EXPECT_LT(width, 300u);
  EXPECT_LT(height, 320u);
}

TEST(Draw, RowsCanBeHigherThanCellsAreWide) {
  HeatMap map = alignment();
  map.columns.clear();
  map.title.clear();
  map.cell = 4;
  const auto [narrow, low] = size_of_png(draw(map, PictureFormat::png));
  map.row_height = 16;
  const auto [width, height] = size_of_png(draw(map, PictureFormat::png));
  EXPECT_EQ(width, narrow);
  EXPECT_EQ(height, low + 3 * 12);
}

TEST(Draw, TextOfAnSvgFileCanBeSelected) {
  HeatMap map = alignment();
  map.rows[1] = "a<b & \x01";
  const std::string svg = draw(map, PictureFormat::svg);
  for (const char* text : {">我喜欢食物</text>", ">食物</text>", ">food</text>", ">a&lt;b &amp;  </text>"})
    EXPECT_THAT(svg, HasSubstr(text));
  // Column labels are rotated, invisible text lies over the visible outlines.
  EXPECT_THAT(svg, HasSubstr("matrix(0 -1 1 0 "));
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0\""));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
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

HeatMap diagonal(int64_t size) {
  HeatMap map{.title = "", .rows = {}, .columns = {}, .row_count = size, .column_count = size, .weights = {}};
  for (int64_t i = 0; i < size; ++i) {
    map.rows.push_back("r" + std::to_string(i));
    map.columns.push_back("word" + std::to_string(i));
    for (int64_t j = 0; j < size; ++j) map.weights.push_back(i == j);
  }
  return map;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Shade, ColumnNumbersStandApart) {
  EXPECT_THAT(shade(diagonal(12)), StartsWith("      1  2  3  4  5  6  7  8  9 10 11 12\n"));
}

TEST(Shade, KeepsToTheWidthOfTheTerminal) {
  for (const size_t width : {40u, 80u, 132u}) {
    const std::string text = shade(diagonal(60), width);
    for (const std::string& line : lines_of(text)) EXPECT_LE(terminal_width(line), width) << line;
    // Every column is there, with its number and its word.
    for (int column = 1; column <= 60; ++column)
      EXPECT_THAT(text, HasSubstr(std::to_string(column) + " word" + std::to_string(column - 1)));
  }
}

TEST(Shade, LongWordsAreCut) {
  HeatMap map = alignment();
  map.rows[0] = map.columns[0] = std::string(6000, 'w');
  for (const std::string& line : lines_of(shade(map, 80))) EXPECT_LE(terminal_width(line), 80u);
}

// What a row is called at its end tells it from others, where columns have no names.
TEST(Shade, NamesOfRowsHaveHalfOfATerminalWithoutNamesOfColumns) {
  const HeatMap map{.title = "",
                    .rows = {"stage 0, block 0, 3x3", "stage 0, block 0, 5x5 dilated"},
                    .columns = {},
                    .row_count = 2,
                    .column_count = 64,
                    .weights = std::vector<float>(128)};
  const std::string text = shade(map, 80);
  EXPECT_THAT(text, HasSubstr("5x5 dilated|"));
  for (const std::string& line : lines_of(text)) EXPECT_LE(terminal_width(line), 80u);
}

TEST(Shade, ANoteStandsBelowWithinTheWidth) {
  HeatMap map = alignment();
  map.notes = {"in ‹ ›: words that the model does not know"};
  EXPECT_THAT(shade(map, 30), testing::EndsWith("in ‹ ›: words that the model\ndoes not know\n"));
  EXPECT_THAT(draw(map, PictureFormat::svg), HasSubstr("does not know"));
}

TEST(Shade, NegativeWeightsHaveMarksAndAColourOfTheirOwnAndAreExplained) {
  HeatMap map{.title = "", .rows = {}, .columns = {}, .row_count = 1, .column_count = 3, .weights = {}};
  map.weights = {-1, 0, 0.5f};
  EXPECT_EQ(shade(map), "|≡≡  ▒▒|\n· - = ≡: negative weights\n");
  EXPECT_THAT(draw(map, PictureFormat::svg), HasSubstr("red: negative weights"));
  map.weights[0] = 1;
  EXPECT_EQ(shade(map), "|██  ▒▒|\n");
  EXPECT_THAT(draw(map, PictureFormat::svg), testing::Not(HasSubstr("negative")));
  const Colour negative = colour_of(-1), positive = colour_of(1);
  EXPECT_GT(negative.red, negative.blue);
  EXPECT_LT(positive.red, positive.blue);
}

TEST(Shade, EveryPanelsNotesAreSaidOnce) {
  HeatMap one = alignment(), two = alignment();
  one.notes = {"first note"};
  two.notes = {"first note", "second note"};
  const std::string svg = draw(Figure{.title = "", .panels = {one, two}, .across = 2}, PictureFormat::svg);
  EXPECT_EQ(svg.find("first note"), svg.rfind("first note"));
  EXPECT_THAT(svg, HasSubstr("second note"));
}

TEST(Shortened, KeepsWhatFitsAndCountsWideCharacters) {
  EXPECT_EQ(shortened("food", 4), "food");
  EXPECT_EQ(shortened("foods", 4), "foo…");
  EXPECT_EQ(shortened("我喜欢食物", 6), "我喜…");
  EXPECT_EQ(terminal_width("e\u0301"), 1u);
  EXPECT_EQ(terminal_width("▁food"), 5u);
  EXPECT_EQ(terminal_width("\xff\xe6"), 2u);
}

}  // namespace
}  // namespace fovea
