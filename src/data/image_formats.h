// What decode_image() chooses from; each throws Error beginning with `where`.
#pragma once

#include "base/error.h"
#include "data/images.h"

namespace fovea::data {

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& where, int64_t max_pixels);
Image decode_png(std::span<const std::byte> bytes, const std::string& where, int64_t max_pixels);

// Before memory is taken for the pixels.
inline void check_pixels(const Image& image, const std::string& where, int64_t max_pixels) {
  require(image.height > 0 && image.width > 0, where, ": a picture without pixels");
  require(image.height <= max_pixels / image.width, where, ": ", image.width, " x ", image.height,
          " pixels, wanted at most ", max_pixels, " in all");
}

}  // namespace fovea::data
