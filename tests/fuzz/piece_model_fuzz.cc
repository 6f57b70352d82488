// Any bytes as a SentencePiece model of others, and as its table of character replacements: refused with an Error, or
// texts are cut without harm.
#include <cstdlib>

#include "base/error.h"
#include "data/piece_model.h"
#include "data/replacement_table.h"
#include "data/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  constexpr const char* kTexts[] = {"a green house", "我喜欢 ｆｕｌｌ ﬁ e\u0301", "\xFF\xC3 broken", ""};
  try {
    const fovea::data::PieceModel model(input, "input");
    for (const char* text : kTexts) {
      for (const int32_t id : model.ids(text))
        if (id < 0 || id >= model.size()) std::abort();
      model.join(model.pieces(text));
      if (!fovea::data::is_utf8(text)) continue;
      for (const auto& place : model.places(text))
        if (place.begin > place.end || place.end > std::string_view(text).size()) std::abort();
    }
  } catch (const fovea::Error&) {
  }
  try {
    const fovea::data::ReplacementTable table(input, "input");
    for (const char* text : kTexts) {
      std::vector<std::pair<size_t, size_t>> sources;
      const std::string replaced = table.replace_clusters(text, &sources);
      if (sources.size() != replaced.size()) std::abort();
      for (const auto& [begin, end] : sources)
        if (begin >= end || (fovea::data::is_utf8(text) && end > std::string_view(text).size())) std::abort();
    }
  } catch (const fovea::Error&) {
  }
  return 0;
}
