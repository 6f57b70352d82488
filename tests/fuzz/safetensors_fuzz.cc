// Any bytes as a safetensors file: refused with an Error or read to the end, never anything else.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const fovea::SafetensorsView view(std::as_bytes(std::span(data, size)), "input");
    for (const fovea::TensorEntry& entry : view.entries()) {
      std::vector<float> values(static_cast<size_t>(entry.shape.count()));
      view.read(entry, values);
    }
  } catch (const fovea::Error&) {
  }
  return 0;
}
