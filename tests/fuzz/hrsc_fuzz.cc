// Any bytes as an annotation of HRSC2016: refused with an Error, or ships of a size that can be drawn.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "data/hrsc.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const fovea::data::Ship& ship :
         fovea::data::parse_hrsc({reinterpret_cast<const char*>(data), size}, "input"))
      if (!(ship.length >= ship.width && ship.width > 0 && std::isfinite(ship.x + ship.y + ship.heading)))
        std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
