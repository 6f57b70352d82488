// Any bytes as merges.txt over all bytes, and as a text: refused with an Error, or a tokenizer that gives
// every text back.
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "data/byte_bpe.h"
#include "data/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace fovea::data;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  // How GPT-2 spells the bytes: themselves, or from U+0100 on.
  std::vector<std::string> tokens{"<s>", "</s>", "<unk>", "<mask>"};
  const auto spell = [&](unsigned c) {
    tokens.push_back(
        c < 0x80 ? std::string(1, static_cast<char>(c))
                 : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))});
  };
  unsigned next = 0x100;
  for (unsigned b = 0; b < 256; ++b) {
    const bool seen = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    spell(seen ? b : next++);
  }
  try {
    const std::vector<Merge> merges = parse_merges(text, "input");
    std::set<std::string> known(tokens.begin(), tokens.end());
    for (const auto& [left, right] : merges)
      if (known.insert(left + right).second) tokens.push_back(left + right);
    const auto tokenizer = make_byte_bpe(tokens, merges, {}, "input");
    const std::vector<int32_t> ids = tokenizer->encode(text);
    for (const int32_t id : ids)
      if (id < 0 || id >= tokenizer->size()) std::abort();
    if (tokenizer->words(ids).size() != ids.size()) std::abort();
    const std::string back = tokenizer->decode(ids);
    if (is_utf8(text) && text.find('<') == std::string_view::npos && back != text) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
