// Ships seen from above: their geometry, and the label maps that a network learns from.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images.h"

namespace fovea::data {

struct Point {
  double x = 0, y = 0;  // pixels, right and down; pixel (0, 0) covers 0 to 1
};

// A rotated box with a front.
struct Ship {
  double x = 0, y = 0;           // middle
  double length = 0, width = 0;  // in pixels
  double heading = 0;            // radians: where the bow points; 0 is right, pi / 2 is down
};

// A point given along the ship (towards the bow) and across it (to its right), in pixels from the middle.
Point at(const Ship& ship, double along, double across);
inline Point bow(const Ship& ship) {
  return at(ship, ship.length / 2, 0);
}
inline Point stern(const Ship& ship) {
  return at(ship, -ship.length / 2, 0);
}
std::array<Point, 4> corners(const Ship& ship);
// The outline of a hull: the box, tapered towards the bow.
std::array<Point, 5> hull(const Ship& ship);
bool inside(std::span<const Point> convex, const Point& point);

// A picture with its ships; land: 1 where there is land, [height, width], empty when nobody knows.
struct ShipScene {
  Image image;
  std::vector<Ship> ships;
  std::vector<uint8_t> land;
};

// The ends of a ship are discs on its axis: their middles lie at this share of the length from the ship's own,
// their radius is this share of its width. So the ends of ships that lie side by side do not touch, and the
// length follows from the distance of the two discs alone.
inline constexpr double kEndPlace = 0.4, kEndRadius = 0.35;

enum class CoarseClass : int32_t { end, body, sea, land };  // end: bow or stern
enum class FineClass : int32_t { bow, stern };
inline constexpr int32_t kIgnoredLabel = -100;

struct ShipMaps {
  int64_t height = 0, width = 0;
  std::vector<int32_t> coarse;  // CoarseClass of each cell
  // FineClass of the nearest end of a ship, wherever a cell lies; kIgnoredLabel in a picture without ships.
  std::vector<int32_t> fine;
};
// Labels of cells of stride x stride pixels, decided by the middle of the cell. Where nobody knows the land, all
// that is no ship is sea.
ShipMaps label_maps(const ShipScene& scene, int64_t stride);

// The scene mirrored left to right where bit 2 of `turn` is set, then turned clockwise `turn` % 4 times by 90
// degrees. Squares only.
ShipScene turned(const ShipScene& scene, int turn);

// Brought to size x size pixels: the longer side resized, the rest filled with the mean colour.
Image fitted(const Image& image, int64_t size);
ShipScene fitted(const ShipScene& scene, int64_t size);

}  // namespace fovea::data
