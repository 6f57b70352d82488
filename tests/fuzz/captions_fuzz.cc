// Any bytes as a file of captions (COCO's JSON, tabs, commas) and as a list of pictures: refused with an Error, or
// names and captions that are UTF-8, filled, and one line each.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "data/captions.h"
#include "data/text.h"

namespace {

void check(const std::string& text) {
  if (!fovea::data::is_utf8(text) || fovea::data::strip(text).empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  for (const char* ending : {".json", ".csv", ".txt"}) {
    const std::string path = "/dev/shm/fovea-captions-" + std::to_string(getpid()) + ending;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    try {
      for (const fovea::data::CaptionedPicture& picture : fovea::data::read_captions(path)) {
        check(picture.name);
        if (picture.captions.empty()) std::abort();
        for (const std::string& caption : picture.captions) {
          check(caption);
          if (caption.find('\n') != std::string::npos) std::abort();
          const std::string words = fovea::data::caption_words(caption);
          if (fovea::data::caption_words(words) != words) std::abort();
        }
      }
    } catch (const fovea::Error&) {
    }
    try {
      for (const std::string& name : fovea::data::read_picture_list(path)) check(name);
    } catch (const fovea::Error&) {
    }
    unlink(path.c_str());
  }
  return 0;
}
