#include "explain/glimpse_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/error.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

GlimpseFigure two_glimpses() {
  GlimpseFigure figure{.title = "7, 90 %",
                       .height = 10,
                       .width = 12,
                       .patch = 2,
                       .pixels = std::vector<uint8_t>(360, 40),
                       .labels = {"cat", "dog"},
                       .steps = {}};
  for (const int64_t at : {-1, 5})
    figure.steps.push_back(
        {{{at, at, 2, std::vector<uint8_t>(12, 200)}, {at - 1, at - 1, 4, std::vector<uint8_t>(12, 90)}},
         {0.4f, 0.6f}});
  return figure;
}

TEST(GlimpseFigure, IsDrawnInEachFormat) {
  EXPECT_THAT(draw(two_glimpses(), PictureFormat::png), StartsWith("\x89PNG"));
  EXPECT_THAT(draw(two_glimpses(), PictureFormat::pdf), StartsWith("%PDF"));
  const std::string svg = draw(two_glimpses(), PictureFormat::svg);
  for (const char* text : {"7, 90 %", "cat", "dog", "60 %"}) EXPECT_THAT(svg, HasSubstr(text));
}

TEST(GlimpseFigure, ShowsEveryGlimpse) {
  GlimpseFigure other = two_glimpses();
  other.steps[1].windows[0].left = 0;
  EXPECT_NE(draw(other, PictureFormat::png), draw(two_glimpses(), PictureFormat::png));
  other.steps.pop_back();
  EXPECT_NE(draw(other, PictureFormat::png), draw(two_glimpses(), PictureFormat::png));
}

TEST(GlimpseFigure, GlimpsesAtTheSamePlaceShareADot) {
  GlimpseFigure figure = two_glimpses();
  figure.steps = {figure.steps[0], figure.steps[0], figure.steps[1], figure.steps[0]};
  EXPECT_THAT(draw(figure, PictureFormat::svg), HasSubstr(">1-2, 4</text>"));
}

// The line on which a text of an SVG file stands.
double line_of(const std::string& svg, const std::string& text) {
  const size_t end = svg.find(")\">" + text + "</text>");
  if (end == std::string::npos) return -1;
  return std::stod(svg.substr(svg.rfind(' ', end) + 1));
}

TEST(GlimpseFigure, ALongTagThatWouldHideAnotherIsShifted) {
  GlimpseFigure figure = two_glimpses();
  GlimpseStep here = figure.steps[1], beside = here;
  beside.windows[0].left += 1;
  figure.steps = {here, here, beside, here, here, beside};
  const std::string svg = draw(figure, PictureFormat::svg);
  const double first = line_of(svg, "1-2, 4-5"), second = line_of(svg, "3, 6");
  ASSERT_GT(first, 0);
  EXPECT_GE(std::abs(first - second), 15);
  figure.steps = {here, beside};
  const std::string apart = draw(figure, PictureFormat::svg);
  EXPECT_EQ(line_of(apart, "1"), line_of(apart, "2")) << "short ones stay in their place";
}

TEST(GlimpseFigure, ManyClassesAreCutToTheLikeliest) {
  GlimpseFigure figure = two_glimpses();
  figure.labels.clear();
  for (int i = 0; i < 100; ++i) figure.labels.push_back("class" + std::to_string(i) + "x");
  for (GlimpseStep& step : figure.steps) {
    step.probabilities.assign(100, 0.001f);
    step.probabilities[77] = 0.9f;
  }
  EXPECT_THAT(draw(figure, PictureFormat::svg), HasSubstr("class77x"));
}

TEST(GlimpseFigure, SizesThatDoNotMatchAreRefused) {
  GlimpseFigure figure = two_glimpses();
  figure.steps[0].probabilities.pop_back();
  EXPECT_THROW(draw(figure, PictureFormat::png), Error);
  figure = two_glimpses();
  figure.steps[0].windows[0].pixels.pop_back();
  EXPECT_THROW(draw(figure, PictureFormat::png), Error);
}

}  // namespace
}  // namespace fovea
