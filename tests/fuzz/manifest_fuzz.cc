// Any text as a manifest of 4096 bytes of floats: refused with an Error, or tensors that lie within them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "models/mobilenet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& entry : fovea::models::parse_manifest(text, 4096, "input"))
      if (entry.offset + 4 * static_cast<uint64_t>(entry.shape.count()) > 4096) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
