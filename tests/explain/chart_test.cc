#include "explain/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fovea {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(AxisTicks, AreRoundAndCoverTheValues) {
  EXPECT_THAT(axis_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(axis_ticks(0, 970, 5), ElementsAre(0, 200, 400, 600, 800, 1000));
  EXPECT_THAT(axis_ticks(1.2, 2.9, 4), ElementsAre(1, 1.5, 2, 2.5, 3));
  EXPECT_GE(axis_ticks(3, 3, 5).size(), 2u);
  EXPECT_GE(axis_ticks(0, 0, 5).size(), 2u);
  for (const double high : {1e-9, 0.37, 1.0, 6.02e23}) {
    const auto ticks = axis_ticks(0, high, 6);
    EXPECT_LE(ticks.front(), 0);
    EXPECT_GE(ticks.back(), high * (1 - 1e-6));
    EXPECT_GE(ticks.size(), 4u);
    EXPECT_LE(ticks.size(), 8u);
  }
}

TEST(Chart, DrawsWhateverThereIs) {
  const Chart full{.across = "step",
                   .series = {{"training loss", {{50, 7}, {100, 5}, {150, NAN}, {200, 4}}, false, false},
                              {"validation loss", {{100, 5.5}, {200, 4.4}}},
                              {"BLEU", {{100, 3}, {200, 12}}, true}}};
  EXPECT_THAT(draw(full, PictureFormat::svg), HasSubstr("<svg"));
  EXPECT_THAT(draw(full, PictureFormat::png), StartsWith("\x89PNG"));
  EXPECT_THAT(draw(Chart{}, PictureFormat::svg), HasSubstr("</svg>"));
  const Chart dot{.across = "step", .series = {{"loss", {{1, 0}}}, {"score", {{1, 0}}, true}}};
  EXPECT_THAT(draw(dot, PictureFormat::svg), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace fovea
