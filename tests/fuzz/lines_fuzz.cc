// Any bytes as a text file, plain or gzip: lines of UTF-8 within the limit, marked ones, or an Error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "data/corpus.h"
#include "data/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const int file = memfd_create("input", 0);
  if (file < 0 || write(file, bytes, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    constexpr size_t kLimit = 100;
    fovea::data::LineReader reader(path, kLimit);
    for (std::string line; reader.next(line);) {
      if (line.size() > kLimit) std::abort();
      if (fovea::data::is_utf8(line) != (reader.fault() != fovea::data::LineFault::bad_utf8)) std::abort();
      if (reader.fault_text().empty()) std::abort();
    }
    fovea::data::read_parallel_tsv(path, {.skip_bad = true, .max_line_bytes = kLimit});
  } catch (const fovea::Error&) {
  }
  close(file);
  return 0;
}
