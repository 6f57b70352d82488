// Reads plain and gzip files line by line in bounded memory, each line as soon as it is there, and reports faulty
// lines.
#include "data/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/text.h"

namespace fovea::data {

namespace {

// A line without an end for that long is no line of a text.
constexpr uint64_t kHopelessLineBytes = uint64_t{256} << 20;
constexpr int kWriterMilliseconds = 10'000;  // how long a FIFO's writer may take to come

bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

bool is_anonymous_pipe(int file) {
  constexpr decltype(std::declval<struct statfs>().f_type) kPipeFileSystem = 0x50495045;
  struct statfs system {};
  return fstatfs(file, &system) == 0 && system.f_type == kPipeFileSystem;
}

}  // namespace

// The bytes of a file, unpacked where they are gzip. zlib's own gzread waits until its buffer is full, which
// would keep a line typed in a terminal from being answered: so read(2) and inflate.
class LineReader::Bytes {
 public:
  Bytes(const std::string& path, std::string name, uint64_t max_stream_bytes)
      : name_(std::move(name)), max_stream_bytes_(max_stream_bytes) {
    if (path == "-") {
      file_ = STDIN_FILENO;
    } else {
      // O_NONBLOCK: opening a FIFO would wait for a writer, and what it is can be asked only after.
      file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
      if (file_ < 0) fail("cannot open ", name_, ": ", std::strerror(errno));
    }
    struct stat status {};
    fstat(file_, &status);
    regular_ = S_ISREG(status.st_mode);
    if (path == "-") return;
    const bool readable = regular_ || S_ISFIFO(status.st_mode) || isatty(file_) || is_null_device(status);
    if (!readable) {
      close(file_);
      fail("cannot read ", name_, ": ", S_ISDIR(status.st_mode) ? "a directory" : "a device",
           ", wanted a file or a pipe");
    }
    awaits_writer_ = S_ISFIFO(status.st_mode) && !is_anonymous_pipe(file_);
    if (!awaits_writer_) wait_from_now_on();
  }
  ~Bytes() {
    if (gzip_) inflateEnd(&stream_);
    if (file_ > STDIN_FILENO) close(file_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  // Up to and with the next end of a line, or as much as there is before more must be read; empty only at
  // the end. Valid until the next call.
  std::string_view piece() {
    if (ready_.empty()) {
      ready_ = more();
      given_ += ready_.size();
      require(max_stream_bytes_ == 0 || given_ <= max_stream_bytes_ || (regular_ && !gzip_), name_,
              ": more than ", max_stream_bytes_ >> 20, " MiB of text, which would be kept in memory");
    }
    const size_t end = find_end(ready_);
    const std::string_view result = ready_.substr(0, end == std::string_view::npos ? end : end + 1);
    ready_.remove_prefix(result.size());
    return result;
  }
  bool is_end(char c) const { return c == '\n' || (carriage_returns_ && c == '\r'); }

  // Whether a line, or the end, can be had without waiting. The beginning of one is not enough: its writer
  // may be waiting too.
  bool waiting() const {
    if (find_end(ready_) != std::string_view::npos || stream_.avail_in > 0) return true;
    pollfd descriptor{file_, POLLIN, 0};
    return poll(&descriptor, 1, 0) > 0;
  }

 private:
  static constexpr size_t kBufferBytes = 64 * 1024;

  // Reads what there is into raw_ from `offset` on; 0 at the end.
  size_t read_raw(size_t offset) {
    for (;;) {
      const ssize_t count = read(file_, raw_.data() + offset, raw_.size() - offset);
      if (count >= 0) return static_cast<size_t>(count);
      require(errno == EINTR, "cannot read ", name_, ": ", std::strerror(errno));
    }
  }

  size_t find_end(std::string_view text) const {
    return carriage_returns_ ? text.find_first_of("\r\n") : text.find('\n');
  }

  void wait_from_now_on() { fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) & ~O_NONBLOCK); }

  // The first read of a FIFO. While it has no writer, reading gives 0 as at the end.
  size_t read_when_written() {
    constexpr int kPause = 50;
    for (int waited = 0; waited < kWriterMilliseconds; waited += kPause) {
      const ssize_t count = read(file_, raw_.data(), raw_.size());
      if (count != 0) {
        wait_from_now_on();
        return count > 0 ? static_cast<size_t>(count) : read_raw(0);
      }
      pollfd descriptor{file_, POLLIN, 0};
      poll(&descriptor, 1, kPause);
      if (descriptor.revents == POLLHUP) return 0;  // a writer came, and went without a word
    }
    fail("cannot read ", name_, ": a FIFO that no program writes to");
  }

  std::string_view more() {
    if (!std::exchange(started_, true)) {
      const std::string_view first = start();
      carriage_returns_ = first.find('\n') == std::string_view::npos && first.find('\r') < first.size() - 1;
      return first;
    }
    return gzip_ ? inflate_more() : std::string_view(raw_.data(), read_raw(0));
  }

  // Looks at the first two bytes, however slowly they come.
  std::string_view start() {
    size_t have = awaits_writer_ ? read_when_written() : read_raw(0);
    if (have == 1 && raw_[0] == '\x1f') have += read_raw(1);
    const std::string_view first(raw_.data(), have);
    if (!first.starts_with("\x1f\x8b")) return first;
    constexpr int kGzipWindow = 15 + 16;
    require(inflateInit2(&stream_, kGzipWindow) == Z_OK, "cannot unpack ", name_, ": out of memory");
    gzip_ = true;
    set_input(have);
    return inflate_more();
  }

  void set_input(size_t count) {
    stream_.next_in = reinterpret_cast<Bytef*>(raw_.data());
    stream_.avail_in = static_cast<uInt>(count);
  }

  std::string_view inflate_more() {
    for (;;) {
      if (stream_.avail_in == 0) {
        const size_t count = read_raw(0);
        require(count > 0 || member_ended_, "cannot unpack ", name_, ": the gzip file is cut short");
        if (count == 0) return {};
        set_input(count);
      }
      // A gzip file may be several, one after the other.
      if (std::exchange(member_ended_, false)) inflateReset(&stream_);
      stream_.next_out = reinterpret_cast<Bytef*>(plain_.data());
      stream_.avail_out = static_cast<uInt>(plain_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      require(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, "cannot unpack ", name_,
              ": the gzip file is damaged");
      member_ended_ = status == Z_STREAM_END;
      const size_t made = plain_.size() - stream_.avail_out;
      if (made > 0) return {plain_.data(), made};
    }
  }

  std::string name_;
  uint64_t max_stream_bytes_, given_ = 0;
  int file_ = -1;
  bool regular_ = false, awaits_writer_ = false;
  bool started_ = false, gzip_ = false, member_ended_ = false;
  bool carriage_returns_ = false;  // end lines
  z_stream stream_{};
  std::string_view ready_;
  std::array<char, kBufferBytes> raw_;
  std::array<char, kBufferBytes> plain_;
};

LineReader::LineReader(std::string path, size_t max_line_bytes, uint64_t max_stream_bytes)
    : name_(path == "-" ? "standard input" : path),
      bytes_(std::make_unique<Bytes>(path, name_, max_stream_bytes)),
      max_line_bytes_(max_line_bytes) {}
LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

bool LineReader::waiting() const {
  return bytes_->waiting();
}

bool LineReader::next(std::string& line) {
  line.clear();
  fault_ = LineFault::none;
  std::string_view piece = bytes_->piece();
  if (piece.empty()) return false;
  ++line_number_;
  uint64_t seen = 0;
  for (bool ended = false; !piece.empty(); piece = ended ? std::string_view() : bytes_->piece()) {
    ended = bytes_->is_end(piece.back());
    seen += piece.size();
    require(seen <= kHopelessLineBytes, place(), ": no end of the line within ", kHopelessLineBytes >> 20,
            " MiB; is this a text?");
    // Two more than the limit: a line just at the limit may still have its end to come.
    if (line.size() + piece.size() > max_line_bytes_ + 2) fault_ = LineFault::too_long;
    if (fault_ == LineFault::none) line += piece;
  }
  if (line.ends_with('\n')) line.pop_back();
  if (line.ends_with('\r')) line.pop_back();
  if (line_number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (line.size() > max_line_bytes_) fault_ = LineFault::too_long;
  if (fault_ == LineFault::too_long) {
    line.clear();
    return true;
  }
  bad_at_ = valid_utf8_prefix(line);
  if (bad_at_ < line.size()) {
    fault_ = LineFault::bad_utf8;
    bad_byte_ = static_cast<unsigned char>(line[bad_at_]);
  }
  return true;
}

std::string LineReader::place() const {
  return message(name_, ", line ", line_number_);
}

std::string LineReader::fault_text() const {
  switch (fault_) {
    case LineFault::none:
      return place() + ": nothing wrong";
    case LineFault::too_long:
      return message(place(), ": longer than ", max_line_bytes_, " bytes");
    case LineFault::bad_utf8:
      break;
  }
  constexpr const char* kDigits = "0123456789abcdef";
  return message(place(), ": not UTF-8 at byte ", bad_at_ + 1, " (0x", kDigits[bad_byte_ >> 4],
                 kDigits[bad_byte_ & 15], ")");
}

}  // namespace fovea::data
