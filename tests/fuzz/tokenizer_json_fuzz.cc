// Any bytes as tokenizer.json, and as tokenizer_config.json beside a vocabulary: refused with an Error, or a
// tokenizer that cuts texts without harm.
#include <cstdlib>

#include "base/error.h"
#include "data/encoder_tokenizer.h"

namespace {

void cut_texts(fovea::data::WordPieceFile parts) {
  const auto tokenizer = fovea::data::make_wordpiece(std::move(parts.tokens), parts.options, "input");
  for (const char* text : {"a green house [MASK]", "我喜欢食物 café", "\xFF\xC3 broken", ""})
    for (const int32_t id : tokenizer->encode(text))
      if (id < 0 || id >= tokenizer->size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try {
    cut_texts(fovea::data::parse_wordpiece_json(text, "input"));
  } catch (const fovea::Error&) {
  }
  try {
    fovea::data::ByteBpeFile parts = fovea::data::parse_byte_bpe_json(text, "input");
    fovea::data::make_byte_bpe(parts.tokens, parts.merges, parts.options, "input")
        ->encode("a green house <mask>");
  } catch (const fovea::Error&) {
  }
  try {
    const auto pieces = fovea::data::make_unigram(fovea::data::parse_unigram_json(text, "input"), "input");
    for (const char* line : {"a green house <mask>", "我喜欢 ｆｕｌｌ e\u0301", "\xFF\xC3 broken", ""})
      for (const int32_t id : pieces->encode(line))
        if (id < 0 || id >= pieces->size()) std::abort();
  } catch (const fovea::Error&) {
  }
  try {
    fovea::data::WordPieceFile parts{{"[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "我"}, {}};
    fovea::data::apply_tokenizer_config(fovea::parse_large_json(text, "input"), parts, "input");
    cut_texts(std::move(parts));
  } catch (const fovea::Error&) {
  }
  return 0;
}
