// Any bytes as an IDX file: refused with an Error, or as many values as its sizes say.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const fovea::data::IdxArray array = fovea::data::parse_idx(std::as_bytes(std::span(data, size)), "input");
    int64_t count = 1;
    for (const int64_t one : array.sizes) count *= one;
    if (array.values.size() != static_cast<size_t>(count)) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
