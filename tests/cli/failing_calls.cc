// A library to preload: the n-th call of a program that changes files under a folder fails as a broken or
// full disk makes it fail.
//
//   FOVEA_FAIL_UNDER  the folder; other files are left alone
//   FOVEA_FAIL_AT     n, from 1
//   FOVEA_FAIL_FULL   if set: from the n-th call on, what needs space fails with ENOSPC; if the n-th call is
//                     a write, half of it is still written. Otherwise the n-th call alone fails, with EIO
//   FOVEA_FAIL_MARK   a file that is made when a call has failed
//
// Counted are open() for writing, write() and pwrite(), close() of a written file, fsync(), ftruncate(), rename(), mkdir()
// and symlink(). Calls of write() to one file in a row count as one: the second fails no differently from the
// first. Calls of pwrite() count one by one.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class Needs { space, nothing };

std::atomic<long> calls{0};
std::atomic<int> last_written{-1};

template <class Function>
Function* next_in_line(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

const char* setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_watched(const char* path) {
  const char* const folder = setting("FOVEA_FAIL_UNDER");
  return *folder != '\0' && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool is_watched(int file) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return is_watched(path);
}

bool is_full() {
  static const bool full = *setting("FOVEA_FAIL_FULL") != '\0';
  return full;
}

// Counts a call; true, with errno set, when it is to fail.
bool fails(Needs needs) {
  static const long at = std::atol(setting("FOVEA_FAIL_AT"));
  const bool full = is_full();
  const long number = ++calls;
  if (at == 0 || number < at || (full ? needs != Needs::space : number > at)) return false;
  static const auto really_open = next_in_line<int(const char*, int, ...)>("open");
  static const auto really_close = next_in_line<int(int)>("close");
  really_close(really_open(setting("FOVEA_FAIL_MARK"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  errno = full ? ENOSPC : EIO;
  return true;
}

// How many of the bytes a write may put; -1, with errno set, when it is to fail.
ssize_t permitted(int file, size_t count, bool counted_alone) {
  static std::atomic<bool> is_half_written{false};
  if (!is_watched(file)) return static_cast<ssize_t>(count);
  const bool goes_on = last_written.exchange(file) == file;
  if (goes_on && is_half_written) return errno = ENOSPC, -1;
  if ((goes_on && !counted_alone) || !fails(Needs::space)) return static_cast<ssize_t>(count);
  if (!is_full() || is_half_written.exchange(true) || count < 2) return -1;
  return static_cast<ssize_t>(count / 2);
}

int open_or_fail(const char* name, const char* path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && is_watched(path) && fails(Needs::space)) return -1;
  last_written = -1;
  return next_in_line<int(const char*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_or_fail("open64", path, flags, mode);
}

ssize_t write(int file, const void* bytes, size_t count) {
  const ssize_t put = permitted(file, count, false);
  return put < 0 ? put
                 : next_in_line<ssize_t(int, const void*, size_t)>("write")(file, bytes,
                                                                            static_cast<size_t>(put));
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  const ssize_t put = permitted(file, count, true);
  return put < 0 ? put
                 : next_in_line<ssize_t(int, const void*, size_t, off_t)>("pwrite")(
                       file, bytes, static_cast<size_t>(put), offset);
}

int fsync(int file) {
  if (is_watched(file) && fails(Needs::nothing)) return -1;
  return next_in_line<int(int)>("fsync")(file);
}

int ftruncate(int file, off_t size) noexcept {
  if (is_watched(file) && fails(Needs::nothing)) return -1;
  return next_in_line<int(int, off_t)>("ftruncate")(file, size);
}

int close(int file) {
  const int flags = fcntl(file, F_GETFL);
  const bool failing =
      flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && is_watched(file) && fails(Needs::nothing);
  last_written = -1;
  const int reason = errno;
  const int status = next_in_line<int(int)>("close")(file);  // the file is gone either way
  if (!failing) return status;
  errno = reason;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  if (is_watched(to) && fails(Needs::nothing)) return -1;
  return next_in_line<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (is_watched(path) && fails(Needs::space)) return -1;
  return next_in_line<int(const char*, mode_t)>("mkdir")(path, mode);
}

int symlink(const char* target, const char* path) noexcept {
  if (is_watched(path) && fails(Needs::space)) return -1;
  return next_in_line<int(const char*, const char*)>("symlink")(target, path);
}

}  // extern "C"
