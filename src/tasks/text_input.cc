#include "tasks/text_input.h"

#include "base/parallel.h"

namespace fovea::tasks {

data::EncodedText encode_input(std::string_view text, const data::Tokenizer& tokenizer,
                               const data::TextEncoding& encoding, bool& cut) {
  data::TextEncoding unlimited = encoding;
  unlimited.max_tokens = 0;
  data::EncodedText encoded = data::encode_text_or_pair(text, tokenizer, unlimited);
  cut = encoding.max_tokens > 0 && static_cast<int64_t>(encoded.ids.size()) > encoding.max_tokens;
  // Few texts are so long that they are worth a second look.
  return cut ? data::encode_text_or_pair(text, tokenizer, encoding) : encoded;
}

data::EncodedTexts encode_inputs(std::span<const std::string> texts, const data::Tokenizer& tokenizer,
                                 const data::TextEncoding& encoding, std::vector<uint8_t>& cut) {
  std::vector<data::EncodedText> ids(texts.size());
  cut.assign(texts.size(), 0);
  parallel_for(static_cast<int64_t>(texts.size()), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      bool was_cut = false;
      ids[i] = encode_input(texts[i], tokenizer, encoding, was_cut);
      cut[i] = was_cut;
    }
  });
  data::EncodedTexts packed;
  for (const data::EncodedText& one : ids) packed.append(one);
  return packed;
}

}  // namespace fovea::tasks
