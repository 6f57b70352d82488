// Windows bitmaps without compression, 24 or 32 bits a pixel: the form of HRSC2016's pictures.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/images.h"

namespace fovea::data {

// Whether a file begins as a bitmap does.
bool is_bmp(std::span<const std::byte> file);
// Throws Error, beginning with `where`, on what is damaged, compressed, of another depth or larger than
// kMaxPixels.
Image decode_bmp(std::span<const std::byte> file, const std::string& where);

}  // namespace fovea::data
