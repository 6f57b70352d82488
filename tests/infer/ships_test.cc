// Rotated boxes: overlap and matching; and ships found in maps of probabilities.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/rng.h"
#include "data/harbour_scenes.h"
#include "infer/ships_from_maps.h"

namespace fovea::infer {
namespace {

using data::Ship;
constexpr double kPi = std::numbers::pi;

TEST(RotatedIou, IsTheKnownOneForBoxesOfAnyAngle) {
  const Ship a{0, 0, 4, 2, 0};
  EXPECT_NEAR(rotated_iou(a, a), 1, 1e-12);
  EXPECT_NEAR(rotated_iou(a, {2, 0, 4, 2, 0}), 1.0 / 3, 1e-12);
  EXPECT_NEAR(rotated_iou(a, {0, 0, 4, 2, kPi}), 1, 1e-12) << "a box has no front";
  EXPECT_NEAR(rotated_iou(a, {0, 0, 4, 2, kPi / 2}), 4.0 / 12, 1e-12) << "a cross";
  EXPECT_EQ(rotated_iou(a, {10, 0, 4, 2, 0.3}), 0);
  EXPECT_EQ(rotated_iou(a, {0, 0, 0, 2, 0}), 0);
  // A square in a square turned by 45 degrees: an octagon.
  const double octagon = 2 * (std::sqrt(2.0) - 1) * 4;
  EXPECT_NEAR(rotated_iou({0, 0, 2, 2, 0}, {0, 0, 2, 2, kPi / 4}), octagon / (8 - octagon), 1e-9);
}

// Against counting points of a fine grid.
TEST(RotatedIou, EqualsCountingPoints) {
  Rng rng(3);
  const auto draw = [&] {
    return Ship{double{rng.uniform()} * 4, double{rng.uniform()} * 4, 2 + 4 * double{rng.uniform()},
                1 + 2 * double{rng.uniform()}, 7 * double{rng.uniform()}};
  };
  for (int i = 0; i < 10; ++i) {
    const Ship a = draw(), b = draw();
    const auto box_a = corners(a), box_b = corners(b);
    int64_t both = 0, either = 0;
    for (double x = -6; x < 12; x += 0.06)
      for (double y = -6; y < 12; y += 0.06) {
        const bool in_a = inside(box_a, {x, y}), in_b = inside(box_b, {x, y});
        both += in_a && in_b;
        either += in_a || in_b;
      }
    EXPECT_NEAR(rotated_iou(a, b), static_cast<double>(both) / static_cast<double>(either), 0.02);
  }
}

TEST(MatchShips, EachTrueShipIsFoundOnceAndTheSurestGoesFirst) {
  const std::vector<Ship> truth{{10, 10, 20, 6, 0}, {50, 50, 20, 6, 1}};
  const std::vector<FoundShip> found{
      {{10, 10, 20, 6, 0.02}, 0.5}, {{10, 11, 20, 6, 0}, 0.9}, {{90, 90, 20, 6, 0}, 0.8}};
  const DetectionCounts counts = match_ships(found, truth);
  EXPECT_EQ(counts.ships, 2);
  EXPECT_EQ(counts.found, 3);
  EXPECT_EQ(counts.matched, 1);
  EXPECT_NEAR(counts.precision(), 1.0 / 3, 1e-12);
  EXPECT_NEAR(counts.recall(), 0.5, 1e-12);
  EXPECT_NEAR(counts.f1(), 0.4, 1e-12);
  EXPECT_NEAR(counts.localisation(), 1, 1e-9) << "the surer one lies a pixel off";
  const DetectionCounts turned = match_ships(std::vector<FoundShip>{{{10, 10, 20, 6, kPi}, 1}}, truth);
  EXPECT_EQ(turned.matched, 1);
  EXPECT_EQ(turned.reversed, 1);
  EXPECT_NEAR(turned.localisation(), 20, 1e-9);
  EXPECT_EQ(match_ships({}, {}).f1(), 0);
}

// Labels as certain probabilities: what is found are the ships that were drawn.
TEST(ShipsFromMaps, FindTheDrawnShipsInTheirOwnLabels) {
  DetectionCounts counts;
  for (uint64_t i = 0; i < 80; ++i) {
    const data::ShipScene scene = data::draw_harbour(9, i, 128);
    const data::ShipMaps maps = label_maps(scene, 2);
    std::vector<float> probabilities;
    for (size_t c = 0; c < maps.coarse.size(); ++c) {
      const int32_t own = maps.coarse[c] == 0 ? maps.fine[c] : maps.coarse[c] + 1;
      for (int32_t k = 0; k < 5; ++k) probabilities.push_back(k == own ? 1 : 0);
    }
    counts += match_ships(ships_from_map({maps.height, maps.width, 2, probabilities}), scene.ships);
  }
  EXPECT_GT(counts.ships, 150);
  EXPECT_GT(counts.precision(), 0.97);
  EXPECT_GT(counts.recall(), 0.97);
  EXPECT_LT(counts.localisation(), 1.5);
  EXPECT_EQ(counts.reversed, 0);
}

TEST(ShipsFromMaps, AMapWithoutEndsHasNoShips) {
  const std::vector<float> sea = [] {
    std::vector<float> all;
    for (int i = 0; i < 16; ++i) all.insert(all.end(), {0, 0, 0, 1, 0});
    return all;
  }();
  EXPECT_TRUE(ships_from_map({4, 4, 2, sea}).empty());
  EXPECT_THROW(ships_from_map({4, 5, 2, sea}), Error);
}

}  // namespace
}  // namespace fovea::infer
