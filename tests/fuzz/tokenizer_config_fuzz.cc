// Any text as tokenizer_config.json beside a vocabulary: refused with an Error, or a tokenizer whose ids are
// its own.
#include <cstdlib>

#include "base/error.h"
#include "data/encoder_tokenizer.h"
#include "folder.h"

namespace {

void use(const FuzzFolder& folder, const char* type) {
  try {
    const fovea::data::EncoderTokenizer loaded = fovea::data::load_encoder_tokenizer(folder.path(), type);
    if (loaded.max_tokens < 0) std::abort();
    const std::vector<int32_t> ids = loaded.tokenizer->encode("a b [MASK] <mask> ab 我");
    for (const int32_t id : loaded.tokenizer->mark(ids).ids)
      if (id < 0 || id >= loaded.tokenizer->size()) std::abort();
  } catch (const fovea::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const FuzzFolder folder;
  static const bool ready = [] {
    folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n我\n");
    folder.write("vocab.json",
                 R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6, "<mask>": 7})");
    folder.write("merges.txt", "#version: 0.2\na b\n");
    return true;
  }();
  folder.write("tokenizer_config.json", as_text(bytes, size));
  if (ready) {
    use(folder, "bert");
    use(folder, "roberta");
  }
  return 0;
}
