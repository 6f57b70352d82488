// From maps of probabilities to ships: bow and stern points, paired into rotated boxes.
#pragma once

#include <span>
#include <vector>

#include "infer/rotated_boxes.h"

namespace fovea::infer {

// Probabilities of bow, stern, body, sea and land for each cell of stride x stride pixels: [height, width, 5].
struct PartitionMap {
  int64_t height = 0, width = 0, stride = 1;
  std::span<const float> probabilities;
};

// Cells that are more likely an end of a ship than not form spots, by bow and by stern; a bow and a stern are one ship
// where most of the way between them is body, the best pairs first. The box's length follows from their distance
// (data::kEndPlace), its width from the body on the nearer side. In pixels, surest first.
std::vector<FoundShip> ships_from_map(const PartitionMap& map);

}  // namespace fovea::infer
