// Any bytes as a Windows bitmap: refused with an Error, or as many pixels as its sides say.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "data/bmp.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const fovea::data::Image image = fovea::data::decode_bmp(std::as_bytes(std::span(data, size)), "input");
    if (image.pixels.size() != static_cast<size_t>(3 * image.height * image.width)) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
