// Any bytes as tokenizer.model: refused with an Error, or a tokenizer that encodes and decodes without harm.
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "data/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view model(reinterpret_cast<const char*>(bytes), size);
  try {
    const auto pieces = fovea::data::parse_sentencepiece(model, "input");
    for (const char* text : {"a green house", "我喜欢食物", "\xFF\xC3 broken", ""})
      for (const int32_t id : pieces->encode(text))
        if (id < 0 || id >= pieces->size()) std::abort();
    std::vector<int32_t> all(pieces->size());
    std::iota(all.begin(), all.end(), 0);
    if (pieces->words(all).size() != all.size()) std::abort();
    pieces->decode(all);
  } catch (const fovea::Error&) {
  }
  return 0;
}
