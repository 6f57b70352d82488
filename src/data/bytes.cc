#include "data/bytes.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "io/file.h"

namespace fovea::data {

ByteFile::ByteFile(const std::filesystem::path& path) : name_(path.string()) {
  const OpenedFile opened = open_regular(path);
  descriptor_ = opened.descriptor;
  size_ = opened.size;
}

ByteFile::~ByteFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

ByteFile::ByteFile(ByteFile&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

ByteFile& ByteFile::operator=(ByteFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

void ByteFile::read(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t count = pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    require(count >= 0, "cannot read ", name_, ": ", std::strerror(errno));
    require(count > 0, name_, " ends before byte ", offset + to.size());
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path, uint64_t limit) {
  const ByteFile file(path);
  require(file.size() <= limit, file.name(), " has ", file.size(), " bytes, wanted at most ", limit);
  std::vector<std::byte> bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes);
  return bytes;
}

}  // namespace fovea::data
