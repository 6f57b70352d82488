// Harbours seen from above, drawn by the program: quays and piers, ships of any heading moored side by side or at
// sea, clutter on land, shadows, sea texture. For training and measuring where no real set is at hand.
#pragma once

#include <cstdint>

#include "data/ships.h"

namespace fovea::data {

// Scene `number` of the series named by `seed`: always the same picture. size: its side in pixels, from 64. Every
// ship lies inside the picture as a whole; most scenes have land, all have at least one ship unless none fits.
ShipScene draw_harbour(uint64_t seed, uint64_t number, int64_t size);

}  // namespace fovea::data
