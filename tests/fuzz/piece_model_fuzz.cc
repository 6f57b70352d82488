// Any bytes as a SentencePiece model of others, and as its table of character replacements: refused with an Error, or
// texts are cut without harm.
#include <cstdlib>

#include "base/error.h"
#include "data/piece_model.h"
#include "data/replacement_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  constexpr const char* kTexts[] = {"a green house", "我喜欢 ｆｕｌｌ ﬁ e\u0301", "\xFF\xC3 broken", ""};
  try {
    const fovea::data::PieceModel model(input, "input");
    for (const char* text : kTexts) {
      for (const int32_t id : model.ids(text))
        if (id < 0 || id >= model.size()) std::abort();
      model.join(model.pieces(text));
    }
  } catch (const fovea::Error&) {
  }
  try {
    const fovea::data::ReplacementTable table(input, "input");
    for (const char* text : kTexts) table.replace_clusters(text);
  } catch (const fovea::Error&) {
  }
  return 0;
}
