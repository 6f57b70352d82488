// Any bytes as a JPEG.
#include "image_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  decode_any(data, size);
  return 0;
}
