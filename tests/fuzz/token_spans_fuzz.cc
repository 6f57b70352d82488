// Any text through the tokenizers of BERT, RoBERTa and XLM-RoBERTa: the characters of its tokens lie within the text, in order,
// and the tokens are those of encode(). The first byte chooses the tokenizer.
#include <cstdlib>

#include "base/error.h"
#include "data/byte_bpe.h"
#include "data/global_tokens.h"
#include "data/text.h"
#include "data/unigram.h"
#include "data/wordpiece.h"
#include "folder.h"

namespace {

using namespace fovea::data;

std::unique_ptr<MarkedTokenizer> byte_tokenizer() {
  // GPT-2's spelling of the bytes.
  std::vector<std::string> tokens{"<s>", "</s>", "<unk>", "<mask>"};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool seen = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const char32_t c = seen ? byte : next++;
    tokens.push_back(
        c < 0x80 ? std::string(1, static_cast<char>(c))
                 : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))});
  }
  tokens.push_back("Ġa");
  return make_byte_bpe(tokens, {{"Ġ", "a"}}, {}, "bytes");
}

// With words between white space, or with spaces that stay.
std::unique_ptr<MarkedTokenizer> unigram(bool split_white) {
  UnigramFile file;
  file.tokens = {"<s>", "<pad>", "</s>", "<unk>", "▁", "a", "▁a", "b", "ab", "é", "▁中", "▁▁", "<mask>"};
  file.scores = {0, 0, 0, 0, -2, -3, -2.5f, -3, -4, -5, -3, -2};
  file.split_white = split_white;
  file.strip_end = file.join_spaces = !split_white;
  return make_unigram(std::move(file), "unigram");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const auto pieces = make_wordpiece(
      {"[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "e", "##e", "中", ".", "i̇", "##̇", "क्", "##्"}, {},
      "pieces");
  static const auto letters = byte_tokenizer(), words = unigram(true), spaces = unigram(false);
  if (size == 0) return 0;
  const MarkedTokenizer& tokenizer = bytes[0] >= 0x80    ? (bytes[0] % 2 != 0 ? *words : *spaces)
                                     : bytes[0] % 2 != 0 ? *pieces
                                                         : *letters;
  const std::string_view text = as_text(bytes + 1, size - 1);
  if (!is_utf8(text)) return 0;
  const std::vector<TokenSpan> spans = tokenizer.spans(text);
  const auto count = static_cast<int64_t>(characters(text).size());
  std::vector<int32_t> ids;
  int64_t before = 0;
  for (const TokenSpan& span : spans) {
    ids.push_back(span.id);
    if (span.begin < before || span.end < span.begin || span.end > count) std::abort();
    before = span.begin;
  }
  if (ids != tokenizer.encode(text)) std::abort();
  try {
    for (const int64_t place : GlobalTokens(std::string(text), tokenizer).places(ids))
      if (place < 0 || place >= static_cast<int64_t>(ids.size())) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
