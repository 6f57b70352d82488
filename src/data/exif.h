// How a camera was held: the orientation that EXIF data in a JPEG or PNG file gives.
#pragma once

#include <cstddef>
#include <span>

#include "data/images.h"

namespace fovea::data {

// EXIF's numbering: 1 as it is; 2 mirrored left to right; 3 turned by 180 degrees; 4 mirrored top to bottom;
// 5 mirrored at the falling diagonal; 6 to be turned clockwise; 7 mirrored at the rising diagonal; 8 to be
// turned counter-clockwise. What is absent or damaged is 1: a picture is not refused for it.
int exif_orientation(std::span<const std::byte> exif);  // a TIFF header and what follows it
int jpeg_orientation(std::span<const std::byte> file);
int png_orientation(std::span<const std::byte> file);

// Whether rows become columns.
inline bool is_turned(int orientation) {
  return orientation >= 5;
}
Image upright(Image image, int orientation);

}  // namespace fovea::data
