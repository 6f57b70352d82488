// Any text as one of the two files that describe a cross-encoder, the other being right: refused with an Error, or settings.
#include "base/error.h"
#include "folder.h"
#include "tasks/cross_encoder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const FuzzFolder folder;
  constexpr const char* kFiles[] = {"config.json", "config_sentence_transformers.json"};
  for (const char* const chosen : kFiles) {
    for (const char* const file : kFiles)
      folder.write(file, file == chosen ? as_text(bytes, size) : R"({"model_type": "CrossEncoder"})");
    try {
      fovea::tasks::read_cross_encoder(folder.path(), folder.path());
    } catch (const fovea::Error&) {
    }
  }
  return 0;
}
