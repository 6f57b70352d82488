// Files as wholes: mapped for reading, replaced atomically for writing, alone or as a set in a directory.
//
// What is written survives a crash: bytes are synced before the name that readers use points at them, and the
// directory is synced after. A failure (full disk, no permission) throws one Error and leaves the old
// content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace fovea {

// A file opened for reading: its descriptor, and how many bytes it has.
struct OpenedFile {
  int descriptor = -1;  // the caller closes it
  uint64_t size = 0;
};
// Never waits, whatever the path names. Throws Error when the file cannot be opened, or is a directory, a
// device, a pipe or anything else but a regular file.
OpenedFile open_regular(const std::filesystem::path& path);

// Whether something, or a directory, is there; links are followed. Throws Error, naming the path, when that
// cannot be found out: a loop of symbolic links, no permission.
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// A file's bytes, mapped read-only; valid as long as the object lives. Movable.
class MappedFile {
 public:
  // Throws Error as open_regular() does.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// A whole file as text; throws Error when it cannot be read or is longer than `limit` bytes.
std::string read_text(const std::filesystem::path& path, uint64_t limit = uint64_t{1} << 30);

// A file being written: appends, and throws Error naming the path and the system's reason when it cannot.
class FileWriter {
 public:
  // Creates or empties the file.
  explicit FileWriter(const std::filesystem::path& path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Syncs to the disk and closes; without it the content may be lost.
  void finish();
  // Closes without syncing: someone else will.
  void close();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Replaces `path` by what `fill` writes: a reader sees the old content or the new, never a part.
void write_atomically(const std::filesystem::path& path, const std::function<void(FileWriter&)>& fill);
void write_atomically(const std::filesystem::path& path, std::string_view text);

// Several files that appear together: written into a temporary directory beside `target`, renamed by
// commit(). Destroyed without commit(), it leaves nothing behind.
class DirectorySet {
 public:
  // Creates the parent where it is missing.
  explicit DirectorySet(std::filesystem::path target);
  DirectorySet(const DirectorySet&) = delete;
  DirectorySet& operator=(const DirectorySet&) = delete;
  ~DirectorySet();
  // Where the set's files are to be written, by write() or otherwise.
  const std::filesystem::path& path() const { return temporary_; }
  void write(const std::string& name, const std::function<void(FileWriter&)>& fill);
  // Syncs every file and the directory, renames it to the target (which must not exist), syncs the parent.
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

// Makes `link` a symbolic link to `target` (a name beside it), replacing an earlier link in one step.
void replace_link(const std::filesystem::path& link, const std::string& target);

// Removes the temporary files and directories that a killed process left in `directory`.
void remove_leftovers(const std::filesystem::path& directory);

// Keeps other processes out of a directory while it lives, by a lock file that the system frees when a
// process dies.
class DirectoryLock {
 public:
  // Throws Error when another process holds it.
  explicit DirectoryLock(const std::filesystem::path& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  int descriptor_ = -1;
};

// Makes a directory and its parents; throws Error saying why it cannot.
void make_directories(const std::filesystem::path& directory);

}  // namespace fovea
