// Any text as the place in the data that a checkpoint keeps: refused with an Error, or
// a place from which batches go on.
#include <cstdlib>

#include "base/error.h"
#include "data/batches.h"
#include "folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace fovea;
  const std::string_view text = as_text(bytes, size);
  try {
    data::BatchOrder order({{3, 0}, {5, 0}, {2, 0}, {9, 0}}, 17, {.max_tokens = 10, .seed = 1});
    order.seek(data::BatchPosition::parse(text));
    for (int i = 0; i < 9; ++i)
      for (const int64_t place : order.next())
        if (place < 0 || place >= 4) std::abort();
    if (data::BatchPosition::parse(order.position().text()).text() != order.position().text()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
