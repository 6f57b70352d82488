#include "explain/text_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explain/report.h"

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
            " 80 %  a dull <b> \n"
            "         ████     \n"
            " 20 %  食物 \n"
            "       ░░░░ \n");
}

TEST(TextMap, BreaksLinesBetweenWords) {
  const TextMap map{.title = "", .sentences = {{1, {{"one", 0.5f}, {"two", 0.5f}, {"three", 0}}}}};
  EXPECT_EQ(shade(map, 8), "one two \n███ ███ \nthree \n      \n");
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
