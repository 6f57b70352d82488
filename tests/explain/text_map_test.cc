#include "explain/text_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/report.h"
#include "explain/shades.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TextMap review() {
  return {.title = "neg, 98.0 %",
          .sentences = {{0.8f, {{"a", 0.05f}, {"dull", 0.9f}, {"<b>", 0.05f}}}, {0.2f, {{"食物", 1}}}},
          .sentences_weigh = true};
}

TEST(TextMap, IsDrawnInEachFormat) {
  EXPECT_THAT(draw(review(), PictureFormat::png), StartsWith("\x89PNG"));
  EXPECT_THAT(draw(review(), PictureFormat::svg), HasSubstr("<svg"));
  EXPECT_THAT(draw(review(), PictureFormat::pdf), StartsWith("%PDF"));
  EXPECT_THAT(draw(TextMap{}, PictureFormat::svg), HasSubstr("</svg>"));
}

TEST(TextMap, ShadesWordsByTheirShareOfTheWhole) {
  EXPECT_FLOAT_EQ(review().largest(), 0.72f);
  EXPECT_EQ(shade(review()),
            "neg, 98.0 %\n"
            "  80 %  a dull <b> \n"
            "        ░ ████ ░░░ \n"
            "  20 %  食物 \n"
            "        ▒▒▒▒ \n"
            "weight of a word in the text: ░ from 0.011  ▒ from 0.1  ▓ from 0.28  █ from 0.55\n");
}

TEST(TextMap, BreaksLinesBetweenWords) {
  const TextMap map{.title = "", .sentences = {{1, {{"one", 0.5f}, {"two", 0.5f}, {"three", 0}}}}};
  EXPECT_THAT(shade(map, 8), StartsWith("one two \n███ ███ \nthree \n      \n"));
}

// A word with 2 % of the largest weight, as in a weak sentence of hierarchical attention.
TEST(TextMap, SmallWeightsAreVisible) {
  const TextMap map{
      .title = "", .sentences = {{0.98f, {{"strong", 1}}}, {0.02f, {{"weak", 1}}}}, .sentences_weigh = true};
  EXPECT_THAT(shade(map), HasSubstr("░░░░"));
  EXPECT_THAT(shade(map), HasSubstr(" 2.0 %  weak"));
  Report report("");
  report.text(map);
  EXPECT_THAT(report.html(), Not(HasSubstr("rgb(255 255 255);color:#20262e\" title=\"0.0200\">weak")));
  EXPECT_THAT(report.html(), HasSubstr("weight of a word in the text"));
}

// As the selection `identity` gives them.
TextMap signed_weights() {
  return {.title = "", .sentences = {{1, {{"bad", -0.743f}, {"good", 0.107f}, {"the", 0}}}}};
}

TEST(TextMap, NegativeWeightsAreShadedByTheirSizeInAnotherColour) {
  EXPECT_FLOAT_EQ(signed_weights().largest(), 0.743f);
  EXPECT_EQ(shade(signed_weights()),
            "bad good the \n"
            "≡≡≡ ▒▒▒▒     \n"
            "weight of a word in the text: ░ from 0.012  ▒ from 0.1  ▓ from 0.29  █ from 0.57\n"
            "negative weight: · from -0.012  - from -0.1  = from -0.29  ≡ from -0.57\n");
  const std::string svg = draw(signed_weights(), PictureFormat::svg);
  EXPECT_THAT(svg, HasSubstr("red: negative weights"));
  EXPECT_THAT(svg, HasSubstr(">-0.74</text>"));
  Report report("");
  report.text(signed_weights());
  EXPECT_THAT(report.html(), HasSubstr("background:rgb(97 13 23);color:#fff\" title=\"-0.7430\">bad"));
  EXPECT_THAT(report.html(), HasSubstr("red: negative weights"));
}

TEST(TextMap, SaysNothingOfNegativeWeightsWhereThereAreNone) {
  EXPECT_THAT(draw(review(), PictureFormat::svg), Not(HasSubstr("negative")));
  EXPECT_THAT(shade(review()), Not(HasSubstr("negative")));
  Report report("");
  report.text(review());
  EXPECT_THAT(report.html(), Not(HasSubstr("negative")));
}

TEST(TextMap, TextsOfAPairStandUnderHeadings) {
  TextMap map{.title = "same", .sentences = {{1, {{"red", 1}}}, {1, {{"blue", 1}}}}};
  EXPECT_THAT(shade(map), StartsWith("same\nred \n███ \nblue \n████ \n"));
  map.sentences[1].text = 1;
  EXPECT_THAT(shade(map), StartsWith("same\nfirst text:\nred \n███ \n\nsecond text:\nblue \n████ \n"));
  EXPECT_THAT(draw(map, PictureFormat::svg), HasSubstr(">second text</text>"));
  Report report("");
  report.text(map);
  EXPECT_THAT(report.html(), HasSubstr("<h3>second text</h3>"));
}

TEST(TextMap, NotesStandBelow) {
  TextMap map = review();
  map.notes = {"one more line"};
  EXPECT_THAT(shade(map), testing::EndsWith("\none more line\n"));
  EXPECT_THAT(draw(map, PictureFormat::svg), HasSubstr(">one more line</text>"));
}

TEST(TextMap, APictureIsAsWideAsItsTextAndLongWordsStayInside) {
  const auto width_of = [](const std::string& word) {
    const std::string png = draw(TextMap{.title = "", .sentences = {{1, {{word, 1}}}}}, PictureFormat::png);
    return static_cast<unsigned char>(png.at(18)) * 256 + static_cast<unsigned char>(png.at(19));
  };
  EXPECT_LT(width_of("short"), 400);
  EXPECT_GT(width_of(std::string(60, 'w')), 600);
  EXPECT_EQ(width_of(std::string(5000, 'w')), width_of(std::string(500, 'w')));
  EXPECT_LE(width_of(std::string(5000, 'w')), 780);
}

TEST(TextMap, PercentsKeepSmallNumbers) {
  EXPECT_EQ(percent_text(0.423), "42 %");
  EXPECT_EQ(percent_text(0.004), "0.4 %");
  EXPECT_EQ(percent_text(0.0001), "<0.1 %");
  EXPECT_EQ(percent_text(0), "0.0 %");
  EXPECT_EQ(percent_text(-0.423), "-42 %");
  EXPECT_EQ(percent_text(-0.0001), ">-0.1 %");
}

TEST(TextMap, StaysTextOnAPage) {
  Report report("a page");
  report.text(review());
  const std::string html = report.html();
  EXPECT_THAT(html, HasSubstr(">dull</span>"));
  EXPECT_THAT(html, HasSubstr("title=\"0.7200\""));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;</span>"));
  EXPECT_THAT(html, Not(HasSubstr("><b></span>")));
}

}  // namespace
}  // namespace fovea
