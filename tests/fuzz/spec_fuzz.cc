// The parser of attention specs, fed with anything: it answers with a spec that prints and parses back, or an
// Error.
#include <cstdlib>

#include "attention/spec.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const fovea::AttentionSpec spec = fovea::parse_spec(text);
    const std::string printed = fovea::to_string(spec);
    if (!(fovea::parse_spec(printed) == spec)) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
