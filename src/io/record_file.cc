// Writes and reads the header and the records of a record file, and finds its intact records when it is opened.
#include "io/record_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "io/json.h"

namespace fovea {
namespace {

// The header: magic, bytes of a record, bytes of the text, the text, zeros.
constexpr std::string_view kMagic = "fovea records 1\n";
constexpr uint64_t kHeader = 1024;
static_assert(16 + 2 * sizeof(uint64_t) + RecordForm::kLongestContent <= kHeader);
// Before each record: its key and the checksum of key and record.
constexpr uint64_t kPrefix = 3 * sizeof(uint64_t);
constexpr uint64_t kLargestRecord = uint64_t{1} << 30;

[[noreturn]] void fail_with_errno(const char* what, const std::filesystem::path& path) {
  fail("cannot ", what, " ", path.string(), ": ", std::strerror(errno));
}

uint64_t checksum_with_key(const RecordKey& key, std::span<const std::byte> record) {
  return checksum_of(record, key.high * 3 + key.low);
}

bool read_all(int descriptor, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

void write_all(int descriptor, uint64_t offset, std::span<const std::byte> from,
               const std::filesystem::path& path) {
  while (!from.empty()) {
    const ssize_t put = ::pwrite(descriptor, from.data(), from.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_with_errno("write", path);
    from = from.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
}

std::array<std::byte, kHeader> header_of(const RecordForm& form) {
  std::array<std::byte, kHeader> header{};
  const uint64_t sizes[] = {form.bytes, form.content.size()};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  std::memcpy(header.data() + kMagic.size(), sizes, sizeof sizes);
  std::memcpy(header.data() + kMagic.size() + sizeof sizes, form.content.data(), form.content.size());
  return header;
}

// A file that is empty, or that ends within the header of this form: its writer was killed, or its disk was full.
bool is_unfinished_header(int descriptor, uint64_t file_bytes, const RecordForm& form) {
  std::array<std::byte, kHeader> found{};
  return file_bytes < kHeader && read_all(descriptor, 0, std::span(found).first(file_bytes)) &&
         std::memcmp(found.data(), header_of(form).data(), file_bytes) == 0;
}

}  // namespace

uint64_t checksum_of(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t hash = (seed ^ bytes.size()) * 0x9E3779B97F4A7C15ull + 0x632BE59BD9B4E019ull;
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0xD6E8FEB86659FD93ull;
    hash ^= hash >> 32;
  };
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    mix(word);
  }
  uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  mix(rest);
  return hash;
}

RecordKey record_key(std::span<const std::byte> content) {
  return {checksum_of(content, 1), checksum_of(content, 2)};
}

RecordFile::RecordFile(const std::filesystem::path& path, const RecordForm& form)
    : path_(path), bytes_(form.bytes) {
  FOVEA_ASSERT(form.bytes > 0 && form.bytes <= kLargestRecord &&
               form.content.size() <= RecordForm::kLongestContent);
  // O_NONBLOCK: opening a FIFO would wait for its other end.
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor_ < 0) fail_with_errno("write", path);
  try {
    struct stat info {};
    require(::fstat(descriptor_, &info) == 0 && S_ISREG(info.st_mode), "cannot write ", path.string(),
            ": not a regular file");
    locked_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    // Where locks are not supported, working without one is better than not at all.
    require(locked_ || errno != EWOULDBLOCK, "another process is writing ", path.string(),
            "; wait for it, or choose another file");
    require(::fstat(descriptor_, &info) == 0, "cannot read ", path.string());
    if (is_unfinished_header(descriptor_, static_cast<uint64_t>(info.st_size), form)) {
      write_all(descriptor_, 0, header_of(form), path_);
      made_ = true;
    } else {
      check_header(form);
      scan(static_cast<uint64_t>(info.st_size));
    }
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RecordFile::~RecordFile() {
  // Only under the lock: another process may have begun to fill it since.
  if (made_ && locked_ && count_ == 0) ::unlink(path_.c_str());
  ::close(descriptor_);
}

uint64_t RecordFile::offset_of(int64_t place) const {
  return kHeader + static_cast<uint64_t>(place) * (kPrefix + bytes_);
}

void RecordFile::check_header(const RecordForm& form) {
  std::array<std::byte, kHeader> found{};
  const bool whole = read_all(descriptor_, 0, found);
  require(whole && std::memcmp(found.data(), kMagic.data(), kMagic.size()) == 0, path_.string(),
          ": not a file of records that Fovea wrote", form.hint);
  if (found == header_of(form)) return;
  uint64_t sizes[2] = {};
  std::memcpy(sizes, found.data() + kMagic.size(), sizeof sizes);
  const size_t length = std::min<uint64_t>(sizes[1], RecordForm::kLongestContent);
  const std::string_view content(reinterpret_cast<const char*>(found.data()) + kMagic.size() + sizeof sizes,
                                 length);
  fail(path_.string(), " contains ", in_quotes(content), ", wanted ", in_quotes(form.content), form.hint);
}

void RecordFile::scan(uint64_t file_bytes) {
  std::vector<std::byte> record(bytes_);
  std::array<uint64_t, 3> prefix{};
  for (; offset_of(count_ + 1) <= file_bytes; ++count_) {
    const uint64_t at = offset_of(count_);
    const bool whole = read_all(descriptor_, at, std::as_writable_bytes(std::span(prefix))) &&
                       read_all(descriptor_, at + kPrefix, record);
    const RecordKey key{prefix[0], prefix[1]};
    if (whole && checksum_with_key(key, record) == prefix[2] && places_.try_emplace(key, count_).second)
      continue;
    ++damaged_;
    free_.insert(count_);
  }
}

void RecordFile::add(const RecordKey& key, std::span<const std::byte> record) {
  FOVEA_ASSERT(record.size() == bytes_);
  if (contains(key)) return;
  const int64_t place = free_.empty() ? count_ : *free_.begin();
  const uint64_t prefix[3] = {key.high, key.low, checksum_with_key(key, record)};
  // The record first: a key without its record would only be found out by its checksum.
  write_all(descriptor_, offset_of(place) + kPrefix, record, path_);
  write_all(descriptor_, offset_of(place), std::as_bytes(std::span(prefix)), path_);
  if (place == count_)
    ++count_;
  else
    free_.erase(place);
  places_.emplace(key, place);
}

void RecordFile::read(const RecordKey& key, std::span<std::byte> record) const {
  FOVEA_ASSERT(record.size() == bytes_);
  const auto place = places_.find(key);
  require(place != places_.end(), path_.string(), ": a record is missing; run the same command again");
  std::array<uint64_t, 3> prefix{};
  const uint64_t at = offset_of(place->second);
  require(read_all(descriptor_, at, std::as_writable_bytes(std::span(prefix))) &&
              read_all(descriptor_, at + kPrefix, record) && prefix[0] == key.high && prefix[1] == key.low &&
              checksum_with_key(key, record) == prefix[2],
          path_.string(),
          ": a record was changed or damaged while it was in use; run the same command again");
}

void RecordFile::release() {
  if (::fsync(descriptor_) != 0) fail_with_errno("sync", path_);
  if (locked_) ::flock(descriptor_, LOCK_UN);
  locked_ = false;
}

}  // namespace fovea
