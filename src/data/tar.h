// Members of an uncompressed tar archive, read where they lie: a collection of pictures as one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "data/bytes.h"

namespace fovea::data {

struct TarMember {
  std::string name;
  uint64_t offset = 0, bytes = 0;  // of its content
};

// The regular files of an archive of `size` bytes, in order; read_at(offset, to) fills `to`. Knows ustar,
// long names of GNU, and paths and sizes of pax; passes over everything else. Throws Error, beginning with
// `where`, on what is no tar or cut off.
std::vector<TarMember> list_tar(uint64_t size, FunctionRef<void(uint64_t, std::span<std::byte>)> read_at,
                                const std::string& where);

class TarFile {
 public:
  explicit TarFile(const std::filesystem::path& path);
  std::span<const TarMember> members() const { return members_; }
  // Of two members of one name the later, as tar unpacks them; null when there is none.
  const TarMember* find(std::string_view name) const;
  // Throws Error when it has more than `limit` bytes.
  std::vector<std::byte> read(const TarMember& member, uint64_t limit = uint64_t{1} << 30) const;

 private:
  ByteFile file_;
  std::vector<TarMember> members_;
  std::map<std::string, size_t, std::less<>> places_;
};

}  // namespace fovea::data
