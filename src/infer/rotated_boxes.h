// Boxes of any angle: how much two overlap, and how well found ones match true ones.
#pragma once

#include <span>
#include <vector>

#include "data/ships.h"

namespace fovea::infer {

// Intersection over union, by clipping one box with the other.
double rotated_iou(const data::Ship& a, const data::Ship& b);

struct FoundShip {
  data::Ship ship;
  double score = 0;  // the higher, the surer
};

// Sums over pictures.
struct DetectionCounts {
  int64_t ships = 0, found = 0, matched = 0;
  double bow_error = 0, stern_error = 0;  // of matched ships: sums of distances in pixels
  int64_t reversed = 0;                   // matched ships whose bow was taken for the stern

  DetectionCounts& operator+=(const DetectionCounts& other);
  double precision() const {
    return found > 0 ? static_cast<double>(matched) / static_cast<double>(found) : 0;
  }
  double recall() const { return ships > 0 ? static_cast<double>(matched) / static_cast<double>(ships) : 0; }
  double f1() const;
  // Mean distance of a matched ship's bow and stern from the true ones, in pixels.
  double localisation() const;
};
// One picture: found ships, surest first, each take the free true ship of largest overlap, if it is at least
// `least`.
DetectionCounts match_ships(std::span<const FoundShip> found, std::span<const data::Ship> truth,
                            double least = 0.5);

}  // namespace fovea::infer
