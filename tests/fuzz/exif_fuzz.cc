// Any bytes as EXIF, as a JPEG's and as a PNG's chunks: an orientation that there is, and pixels that are only
// moved.
#include <algorithm>
#include <cstdlib>

#include "data/exif.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea::data;
  const auto bytes = std::as_bytes(std::span(data, size));
  const Image image{2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}};
  for (const int orientation : {exif_orientation(bytes), jpeg_orientation(bytes), png_orientation(bytes)}) {
    if (orientation < 1 || orientation > 8) std::abort();
    Image turned = upright(image, orientation);
    if (turned.height * turned.width != 6) std::abort();
    std::sort(turned.pixels.begin(), turned.pixels.end());
    if (turned.pixels != image.pixels) std::abort();
  }
  return 0;
}
