// Any bytes as a tar archive: refused with an Error, or members that lie within it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/error.h"
#include "data/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read_at = [&](uint64_t offset, std::span<std::byte> to) {
    if (offset > size || to.size() > size - offset) std::abort();
    if (!to.empty()) std::memcpy(to.data(), data + offset, to.size());
  };
  try {
    for (const fovea::data::TarMember& member : fovea::data::list_tar(size, read_at, "input"))
      if (member.offset > size || member.bytes > size - member.offset) std::abort();
  } catch (const fovea::Error&) {
  }
  return 0;
}
