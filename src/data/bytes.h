// Whole files as bytes, within a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace fovea::data {

// A file open for reading at any place. Throws Error, naming it, when it cannot be opened or is no regular
// file.
class ByteFile {
 public:
  explicit ByteFile(const std::filesystem::path& path);
  ~ByteFile();
  ByteFile(ByteFile&& other) noexcept;
  ByteFile& operator=(ByteFile&& other) noexcept;
  uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  // Fills `to` from `offset` on; throws Error when the file ends before.
  void read(uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// Throws Error when the file is longer than `limit`.
std::vector<std::byte> read_bytes(const std::filesystem::path& path, uint64_t limit);

}  // namespace fovea::data
