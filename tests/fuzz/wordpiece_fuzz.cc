// Any bytes as BERT's vocab.txt: refused with an Error, or a vocabulary that cuts texts without harm and is
// written as it was read.
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "data/wordpiece.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace fovea::data;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    const auto tokens = parse_wordpiece_tokens(text, "input");
    const auto pieces = make_wordpiece(tokens, {.lowercase = size % 2 == 0}, "input");
    if (parse_wordpiece_tokens(pieces->bytes(), "again") != tokens) std::abort();
    // The vocabulary is a text too, and a hard one.
    const std::vector<int32_t> ids = pieces->encode(text.substr(0, 4096));
    for (const int32_t id : ids)
      if (id < 0 || id >= pieces->size()) std::abort();
    std::vector<int32_t> all(static_cast<size_t>(pieces->size()));
    std::iota(all.begin(), all.end(), 0);
    if (pieces->words(all).size() != all.size()) std::abort();
    pieces->encode(pieces->decode(all).substr(0, 4096));
    if (pieces->mark(ids, all, 16).ids.size() > 16) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
