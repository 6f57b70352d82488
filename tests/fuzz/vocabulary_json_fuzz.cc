// Any bytes as a vocab.json: refused with an Error, or as many tokens as ids, none of them empty.
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "data/vocabulary_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const auto tokens =
        fovea::data::parse_vocabulary_json({reinterpret_cast<const char*>(bytes), size}, "input");
    if (std::any_of(tokens.begin(), tokens.end(), [](const std::string& token) { return token.empty(); }))
      std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
