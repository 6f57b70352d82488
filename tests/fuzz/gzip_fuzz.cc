// Any bytes behind a gzip header, in pieces of several members: an Error, or the lines that zlib's own reader
// finds.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/lines.h"

namespace {

// The whole of a gzip file by zlib; false where it is damaged or cut off.
bool unpack(const std::string& path, std::string& text) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) std::abort();
  char buffer[4096];
  int count = 0;
  while ((count = gzread(file, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(count));
  int code = Z_OK;
  gzerror(file, &code);
  const bool plain = gzdirect(file) != 0;
  return gzclose(file) == Z_OK && count == 0 && code == Z_OK && !plain;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  packed.append(reinterpret_cast<const char*>(bytes), size);
  const int file = memfd_create("input", 0);
  if (file < 0 || write(file, packed.data(), packed.size()) != static_cast<ssize_t>(packed.size()))
    std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  constexpr size_t kLimit = 4096;
  try {
    std::string joined;
    bool whole = true;
    fovea::data::LineReader reader(path, kLimit, 1 << 24);
    for (std::string line; reader.next(line);) {
      whole = whole && reader.fault() != fovea::data::LineFault::too_long;
      joined += line;
    }
    std::string text;
    if (unpack(path, text) && whole) {
      // Line ends and a mark at the start are dropped; what is between them is the same.
      const auto bare = [](const std::string& from) {
        std::string kept;
        for (const char c : from)
          if (c != '\n' && c != '\r') kept += c;
        return kept.starts_with("\xEF\xBB\xBF") ? kept.substr(3) : kept;
      };
      if (bare(joined) != bare(text)) std::abort();
    }
  } catch (const fovea::Error&) {
  }
  close(file);
  return 0;
}
