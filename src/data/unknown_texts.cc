#include "data/unknown_texts.h"

#include <algorithm>

#include "data/text.h"

namespace fovea::data {

std::vector<std::string> texts_of_unknown(const Tokenizer& tokenizer, std::string_view sentence,
                                          std::span<const int32_t> ids) {
  std::vector<std::string> texts(ids.size());
  const int32_t unknown = tokenizer.unknown_id();
  if (unknown < 0 || std::find(ids.begin(), ids.end(), unknown) == ids.end()) return texts;
  std::vector<std::string> found = tokenizer.unknown_texts(sentence);
  for (size_t i = 0, next = 0; i < ids.size() && next < found.size(); ++i)
    if (ids[i] == unknown) texts[i] = std::move(found[next++]);
  return texts;
}

std::vector<std::string> texts_of_unknown(std::string_view text, const Tokenizer& tokenizer,
                                          const TextEncoding& encoding, const EncodedText& encoded) {
  std::string lower;
  if (encoding.lowercase) text = lower = lowercase(text);
  std::vector<std::string> found;
  const auto add = [&](std::string_view one, std::span<const int32_t> ids) {
    // A sentence may end inside of what would be one word of the whole text.
    std::vector<std::string_view> parts{one};
    if (encoding.form == TextForm::sentences) parts = split_sentences(one);
    for (const std::string_view part : parts) {
      const size_t end = encoding.form == TextForm::sentences
                             ? static_cast<size_t>(std::find(ids.begin(), ids.end(), kEnd) - ids.begin()) + 1
                             : ids.size();
      const std::span<const int32_t> own = ids.first(std::min(end, ids.size()));
      for (std::string& written : texts_of_unknown(tokenizer, part, own)) found.push_back(std::move(written));
      ids = ids.subspan(own.size());
    }
    found.resize(found.size() + ids.size());
  };
  const std::span<const int32_t> ids = encoded.ids;
  const size_t tab = encoded.first > 0 ? text.find('\t') : std::string_view::npos;
  if (tab == std::string_view::npos) {
    add(text, ids);
  } else {
    add(text.substr(0, tab), ids.first(static_cast<size_t>(encoded.first)));
    add(text.substr(tab + 1), ids.subspan(static_cast<size_t>(encoded.first)));
  }
  return found;
}

}  // namespace fovea::data
