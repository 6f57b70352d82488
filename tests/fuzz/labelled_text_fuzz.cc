// Any bytes as a file of labelled texts, with commas, tabs or labels in front: refused with an Error, or
// texts and labels that are UTF-8, filled, and one line each.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "data/labelled_text.h"
#include "data/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  for (const char* ending : {".csv", ".tsv"}) {
    const std::string path = "/dev/shm/fovea-fuzz-" + std::to_string(getpid()) + ending;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    for (const bool skip : {true, false}) {
      try {
        const fovea::data::LabelledText text =
            fovea::data::read_labelled(path, {.skip_bad = skip, .max_text_bytes = 200});
        if (text.texts.empty() || text.texts.size() != text.labels.size()) std::abort();
        for (const auto* side : {&text.texts, &text.labels})
          for (const std::string& one : *side)
            if (!fovea::data::is_utf8(one) || fovea::data::strip(one).empty()) std::abort();
        for (const std::string& one : text.texts) {
          if (one.find('\n') != std::string::npos) std::abort();
          for (const std::string_view sentence : fovea::data::split_sentences(one))
            if (fovea::data::strip(sentence) != sentence || sentence.empty()) std::abort();
        }
        fovea::data::label_set(text, path);
      } catch (const fovea::Error&) {
      }
    }
    unlink(path.c_str());
  }
  return 0;
}
