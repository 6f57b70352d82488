// Pictures as PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/labelled_pictures.h"

namespace fovea::data {

// A PNG file of pixels [height, width, channels]; 1 or 3 channels.
std::string encode_png(std::span<const uint8_t> pixels, const PictureForm& form);

}  // namespace fovea::data
