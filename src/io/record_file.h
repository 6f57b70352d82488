// A file of records of one size, each found by a key and guarded by a checksum: results that are computed once, kept,
// and shared by several runs.
//
// Records are appended one by one, so that a process that is killed loses at most the one it was writing. A record
// whose checksum does not fit is taken for absent and written again. Memory holds the keys alone.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>

namespace fovea {

// Tells contents apart; not meant against people who try.
uint64_t checksum_of(std::span<const std::byte> bytes, uint64_t seed = 0);

// 128 bits, so that no two contents of a collection share a key by chance.
struct RecordKey {
  uint64_t high = 0, low = 0;
  friend auto operator<=>(const RecordKey&, const RecordKey&) = default;
};
RecordKey record_key(std::span<const std::byte> content);

struct RecordForm {
  std::string content;    // what the records are and what they were made with: at most kLongestContent bytes
  uint64_t bytes = 0;     // of a record
  std::string hint = {};  // ends the message about a file of other records
  static constexpr size_t kLongestContent = 900;
};

class RecordFile {
 public:
  // Opens the file, or makes it, and reads the keys and checksums of all records. Only one process at a time may hold
  // it for writing; see release(). Throws Error when the file is something else, holds records of another form, or is
  // held by another process.
  RecordFile(const std::filesystem::path& path, const RecordForm& form);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
  // Removes a file that this object made and that got no record before release(): it holds nothing to keep.
  ~RecordFile();

  bool contains(const RecordKey& key) const { return places_.contains(key); }
  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  int64_t damaged() const { return damaged_; }  // records found damaged when the file was opened
  // record: form.bytes long. A key that is there already is left as it is.
  void add(const RecordKey& key, std::span<const std::byte> record);
  // Fills `record`, form.bytes long. Throws Error when there is no such key, or the record was damaged meanwhile. Safe
  // to call from several threads while nothing is added.
  void read(const RecordKey& key, std::span<std::byte> record) const;
  // Syncs what was added, and lets other processes write.
  void release();

 private:
  uint64_t offset_of(int64_t place) const;
  void check_header(const RecordForm& form);
  void scan(uint64_t file_bytes);

  std::filesystem::path path_;
  uint64_t bytes_;
  int descriptor_ = -1;
  bool locked_ = false, made_ = false;
  int64_t count_ = 0, damaged_ = 0;  // places in the file, damaged ones included
  std::map<RecordKey, int64_t> places_;
  std::set<int64_t> free_ = {};  // damaged places
};

}  // namespace fovea
