// Walks through the headers of a tar archive, extra headers with long names included, and reads members.
#include "data/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/error.h"

namespace fovea::data {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxNameBytes = 64 * 1024;  // of a long name or a pax record

// A block of a header; fields are at fixed places.
class Header {
 public:
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(block_)); }
  bool is_empty() const {
    return std::all_of(block_.begin(), block_.end(), [](char c) { return c == 0; });
  }
  // Up to the first NUL.
  std::string_view text(size_t begin, size_t size) const {
    const std::string_view field(block_.data() + begin, size);
    return field.substr(0, field.find('\0'));
  }
  // Octal digits, or a binary number behind a byte of 0x80; nothing for anything else.
  std::optional<uint64_t> number(size_t begin, size_t size) const {
    uint64_t value = 0;
    if (static_cast<unsigned char>(block_[begin]) == 0x80) {
      for (size_t i = begin + 1; i < begin + size; ++i) {
        if (value >> 56 != 0) return std::nullopt;
        value = value << 8 | static_cast<unsigned char>(block_[i]);
      }
      return value;
    }
    std::string_view digits = text(begin, size);
    while (digits.starts_with(' ')) digits.remove_prefix(1);
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  }
  // The sum of all bytes, its own field counted as spaces.
  bool checksum_holds() const {
    uint64_t sum = 8 * ' ';
    for (size_t i = 0; i < block_.size(); ++i)
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(block_[i]);
    return number(148, 8) == sum;
  }
  std::string name() const {
    const std::string_view name = text(0, 100), prefix = text(345, 155);
    const bool ustar = text(257, 5) == "ustar" && block_[262] == '\0';
    return ustar && !prefix.empty() ? std::string(prefix).append("/").append(name) : std::string(name);
  }
  char type() const { return block_[156]; }

 private:
  std::array<char, kBlock> block_{};
};

// What an extra header says of the member that follows.
struct Extra {
  std::optional<std::string> name;
  std::optional<uint64_t> bytes;
};

// "27 path=a/long/name\n", one after the other; the number counts itself. False when they are not so.
bool read_pax(std::string_view records, Extra& extra) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [after, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(after - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 2 || records[digits] != ' ' ||
        records[length - 1] != '\n')
      return false;
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") extra.name = std::string(value);
    if (key == "size") {
      uint64_t bytes = 0;
      const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (bad != std::errc() || end != value.data() + value.size()) return false;
      extra.bytes = bytes;
    }
    records.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::vector<TarMember> list_tar(uint64_t size, FunctionRef<void(uint64_t, std::span<std::byte>)> read_at,
                                const std::string& where) {
  std::vector<TarMember> members;
  Extra extra;
  uint64_t at = 0;
  for (;;) {
    Header header;
    require(size - at >= kBlock, where, ": the archive is cut off at byte ", size,
            at == 0 ? "; is it a tar?" : "");
    read_at(at, header.bytes());
    if (header.is_empty()) return members;
    require(header.checksum_holds(), where, ": no tar header at byte ", at,
            at == 0 ? "; is it compressed? wanted a plain tar" : "");
    const std::optional<uint64_t> stored = header.number(124, 12);
    require(stored.has_value(), where, ": no size in the tar header at byte ", at);
    at += kBlock;
    const char type = header.type();
    const bool is_extra = type == 'L' || type == 'x';
    const uint64_t bytes = !is_extra && extra.bytes ? *extra.bytes : *stored;
    require(bytes <= size - at, where, ": a member of ", bytes, " bytes at byte ", at,
            " goes beyond the archive's end at ", size);
    if (is_extra) {
      require(bytes <= kMaxNameBytes, where, ": a name of ", bytes, " bytes at byte ", at,
              ", wanted at most ", kMaxNameBytes);
      std::string text(static_cast<size_t>(bytes), '\0');
      read_at(at, std::as_writable_bytes(std::span(text)));
      if (type == 'L')
        extra.name = text.substr(0, text.find('\0'));
      else
        require(read_pax(text, extra), where, ": no pax record at byte ", at);
    } else {
      if (type == '0' || type == '\0') {
        std::string name = extra.name ? *std::move(extra.name) : header.name();
        if (name.starts_with("./")) name.erase(0, 2);
        members.push_back({std::move(name), at, bytes});
      }
      // A global pax header speaks of all members; none of what it may say matters here.
      if (type != 'g') extra = {};
    }
    const uint64_t padded = bytes + (kBlock - bytes % kBlock) % kBlock;
    require(padded <= size - at, where, ": the archive is cut off at byte ", size);
    at += padded;
  }
}

TarFile::TarFile(const std::filesystem::path& path) : file_(path) {
  members_ = list_tar(
      file_.size(), [this](uint64_t offset, std::span<std::byte> to) { file_.read(offset, to); },
      file_.name());
  for (size_t i = 0; i < members_.size(); ++i) places_.insert_or_assign(members_[i].name, i);
}

const TarMember* TarFile::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &members_[found->second];
}

std::vector<std::byte> TarFile::read(const TarMember& member, uint64_t limit) const {
  require(member.bytes <= limit, file_.name(), ": ", member.name, " has ", member.bytes,
          " bytes, wanted at most ", limit);
  std::vector<std::byte> bytes(static_cast<size_t>(member.bytes));
  file_.read(member.offset, bytes);
  return bytes;
}

}  // namespace fovea::data
