#include "data/lines.h"

#include <fcntl.h>
#include <poll.h>
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

// The bytes of a file, unpacked where they are gzip. zlib's own gzread waits until its buffer is full, which
// would keep a line typed in a terminal from being answered: so read(2) and inflate.
class LineReader::Bytes {
 public:
  Bytes(const std::string& path, std::string name) : name_(std::move(name)) {
    file_ = path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(file_ >= 0, "cannot open ", name_, ": ", std::strerror(errno));
  }
  ~Bytes() {
    if (gzip_) inflateEnd(&stream_);
    if (file_ > STDIN_FILENO) close(file_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  // Up to and with the next "\n", or as much as there is before more must be read; empty only at the end.
  // Valid until the next call.
  std::string_view piece() {
    if (ready_.empty()) ready_ = more();
    const size_t end = ready_.find('\n');
    const std::string_view result = ready_.substr(0, end == std::string_view::npos ? end : end + 1);
    ready_.remove_prefix(result.size());
    return result;
  }

  // Whether a line, or the end, can be had without waiting. The beginning of one is not enough: its writer
  // may be waiting too.
  bool waiting() const {
    if (ready_.find('\n') != std::string_view::npos || stream_.avail_in > 0) return true;
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

  std::string_view more() {
    if (!std::exchange(started_, true)) return start();
    return gzip_ ? inflate_more() : std::string_view(raw_.data(), read_raw(0));
  }

  // Looks at the first two bytes, however slowly they come.
  std::string_view start() {
    size_t have = read_raw(0);
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
  int file_ = -1;
  bool started_ = false, gzip_ = false, member_ended_ = false;
  z_stream stream_{};
  std::string_view ready_;
  std::array<char, kBufferBytes> raw_;
  std::array<char, kBufferBytes> plain_;
};

LineReader::LineReader(std::string path, size_t max_line_bytes)
    : name_(path == "-" ? "standard input" : path),
      bytes_(std::make_unique<Bytes>(path, name_)),
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
  for (bool ended = false; !piece.empty(); piece = ended ? std::string_view() : bytes_->piece()) {
    ended = piece.back() == '\n';
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
