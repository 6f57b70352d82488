// Any bytes as vocab.txt: refused with an Error, or a vocabulary that is written as it was read.
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "data/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    const auto words = fovea::data::parse_words(text, "input");
    if (fovea::data::parse_words(words->bytes(), "again")->bytes() != words->bytes()) std::abort();
    std::vector<int32_t> all(words->size());
    std::iota(all.begin(), all.end(), 0);
    if (words->words(all).size() != all.size()) std::abort();
    words->encode(words->decode(all));
  } catch (const fovea::Error&) {
  }
  return 0;
}
