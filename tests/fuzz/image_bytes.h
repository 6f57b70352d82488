// What the targets for pictures share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "data/images.h"

// Any bytes as a picture of at most a quarter of a million pixels: refused with an Error, or as many pixels
// as it says.
inline void decode_any(const uint8_t* data, size_t size) {
  try {
    const fovea::data::Image image =
        fovea::data::decode_image(std::as_bytes(std::span(data, size)), "input", {.max_pixels = 1 << 18});
    if (image.pixels.size() != static_cast<size_t>(image.height * image.width * 3)) std::abort();
  } catch (const fovea::Error&) {
  }
}
