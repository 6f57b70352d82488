// Any bytes as the config.json of a MarianMT folder: refused with an Error, or sizes and ids within their ranges.
#include <cstdlib>

#include "base/error.h"
#include "models/marian.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const fovea::Json json = fovea::parse_json({reinterpret_cast<const char*>(bytes), size}, "input");
    const fovea::models::MarianConfig config = fovea::models::marian_config(json, "input");
    const fovea::models::TransformerConfig& network = config.network;
    if (config.pad < 0 || config.pad >= network.target_vocabulary || config.end < 0 ||
        config.end >= network.target_vocabulary || network.width % network.heads != 0)
      std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
