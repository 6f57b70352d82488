// Maps files for reading, and writes files and directories so that a crash leaves the old or the new state.
#include "io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace fovea {
namespace fs = std::filesystem;
namespace {

// Begins every temporary name, so that what a killed process left can be told from a user's files.
constexpr std::string_view kTemporaryPrefix = ".fovea-tmp-";

[[noreturn]] void fail_with_errno(std::string_view what, const fs::path& path) {
  const int reason = errno;
  const char* hint = reason == ENOSPC || reason == EDQUOT || reason == EFBIG
                         ? "; free some space or write elsewhere, what was there before is untouched"
                         : "";
  fail("cannot ", what, " ", path.string(), ": ", std::strerror(reason), hint);
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync_path(const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) fail_with_errno("open", path);
  // Some network file systems cannot sync a directory and say EINVAL; nothing better can be done there.
  const bool ok = ::fsync(descriptor) == 0 || ((flags & O_DIRECTORY) && errno == EINVAL);
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  if (!ok) fail_with_errno("sync", path);
}

void sync_directory(const fs::path& path) {
  sync_path(path, O_RDONLY | O_DIRECTORY);
}

// A name beside `path` that no other process uses.
fs::path temporary_beside(const fs::path& path) {
  static int counter = 0;
  return parent_of(path) /
         (std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "-" +
          std::to_string(__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED)) + "-" + path.filename().string());
}

void rename_or_fail(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_with_errno("rename a finished file to", to);
}

// Removes a path when left, unless the work it was made for succeeded.
class RemoveOnExit {
 public:
  explicit RemoveOnExit(fs::path path) : path_(std::move(path)) {}
  RemoveOnExit(const RemoveOnExit&) = delete;
  RemoveOnExit& operator=(const RemoveOnExit&) = delete;
  ~RemoveOnExit() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  void keep() { path_.clear(); }

 private:
  fs::path path_;
};

}  // namespace

OpenedFile open_regular(const fs::path& path) {
  // O_NONBLOCK: opening a FIFO would wait for its writer. It means nothing to a regular file.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) fail_with_errno("open", path);
  struct stat info {};
  const bool known = ::fstat(descriptor, &info) == 0;
  if (known && S_ISREG(info.st_mode)) return {descriptor, static_cast<uint64_t>(info.st_size)};
  ::close(descriptor);
  fail("cannot read ", path.string(), ": ",
       known && S_ISDIR(info.st_mode) ? "a directory, wanted a file" : "not a regular file");
}

bool path_exists(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require(fs::status_known(status) && status.type() != fs::file_type::unknown, "cannot read ", path.string(),
          ": ", error.message());
  return fs::exists(status);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return path_exists(path) && fs::is_directory(path, ignored);
}

MappedFile::MappedFile(const fs::path& path) {
  const auto [descriptor, bytes] = open_regular(path);
  size_ = static_cast<size_t>(bytes);
  if (size_ > 0) {
    // Weights that are read in place may be trained: what is written stays in memory, never in the file.
    void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
    const int reason = errno;
    ::close(descriptor);
    errno = reason;
    if (mapped == MAP_FAILED) fail_with_errno("map", path);
    data_ = mapped;
  } else {
    ::close(descriptor);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::string read_text(const fs::path& path, uint64_t limit) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  require(bytes.size() <= limit, path.string(), " contains ", bytes.size(), " bytes, wanted at most ", limit);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FileWriter::FileWriter(const fs::path& path, const fs::path& shown)
    : shown_(shown.empty() ? path : shown),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail_with_errno("write", shown_);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  constexpr size_t kLargestWrite = size_t{1} << 30;  // Linux writes at most 2 GiB a call
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;  // a device that takes nothing more
    if (written <= 0) fail_with_errno("write", shown_);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void FileWriter::finish() {
  if (::fsync(descriptor_) != 0) fail_with_errno("sync", shown_);
  close();
}

void FileWriter::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno("close", shown_);
}

void write_atomically(const fs::path& path, const std::function<void(FileWriter&)>& fill) {
  const fs::path temporary = temporary_beside(path);
  RemoveOnExit guard(temporary);
  {
    FileWriter writer(temporary, path);
    fill(writer);
    writer.finish();
  }
  rename_or_fail(temporary, path);
  guard.keep();
  sync_directory(parent_of(path));
}

void write_atomically(const fs::path& path, std::string_view text) {
  write_atomically(path, [&](FileWriter& writer) { writer.write(text); });
}

DirectorySet::DirectorySet(fs::path target)
    : target_(std::move(target)), temporary_(temporary_beside(target_)) {
  make_directories(parent_of(target_));
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  if (::mkdir(temporary_.c_str(), 0777) != 0) fail_with_errno("make the directory", temporary_);
}

DirectorySet::~DirectorySet() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

void DirectorySet::write(const std::string& name, const std::function<void(FileWriter&)>& fill) {
  FileWriter writer(temporary_ / name);
  fill(writer);
  writer.close();
}

void DirectorySet::commit() {
  std::error_code error;
  for (fs::directory_iterator it(temporary_, error), end; !error && it != end; it.increment(error))
    sync_path(it->path(), O_RDONLY);
  require(!error, "cannot read ", temporary_.string(), ": ", error.message());
  sync_directory(temporary_);
  rename_or_fail(temporary_, target_);
  committed_ = true;
  sync_directory(parent_of(target_));
}

void replace_link(const fs::path& link, const std::string& target) {
  const fs::path temporary = temporary_beside(link);
  RemoveOnExit guard(temporary);
  std::error_code ignored;
  fs::remove(temporary, ignored);
  if (::symlink(target.c_str(), temporary.c_str()) != 0) fail_with_errno("make the link", link);
  rename_or_fail(temporary, link);
  guard.keep();
  sync_directory(parent_of(link));
}

void remove_leftovers(const fs::path& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (entry.path().filename().string().starts_with(kTemporaryPrefix)) fs::remove_all(entry.path(), ignored);
}

DirectoryLock::DirectoryLock(const fs::path& directory) {
  const fs::path path = directory / ".fovea-lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_with_errno("write", path);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const bool taken = errno == EWOULDBLOCK;
  ::close(descriptor_);
  // Where locks are not supported, working without one is better than not at all.
  require(!taken, "another process is working in ", directory.string(),
          "; wait for it or choose another directory");
  descriptor_ = -1;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void make_directories(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  require(!error && fs::is_directory(directory, error), "cannot make the directory ", directory.string(),
          ": ", error ? error.message() : "a file of this name exists");
}

}  // namespace fovea
