// Lines of a text file, plain or gzip, one after the other in bounded memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fovea::data {

// Why a line cannot be used.
enum class LineFault { none, bad_utf8, too_long };

// A line longer than this is a fault: nothing a person wrote as one sentence.
inline constexpr size_t kMaxLineBytes = 64 * 1024;

// The most text that is kept in memory from a pipe or a gzip file, whose size is not known before: 8 GiB.
inline constexpr uint64_t kMaxStreamBytes = uint64_t{8} << 30;

// Reads as bytes come, so a line typed in a terminal is there at once. A line ends at "\n" or "\r\n"; the
// last one may lack it; a byte-order mark at the start is dropped. gzip is known by its first bytes. A text
// that begins with "\r" and no "\n" within 64 KiB has "\r" as its line end.
class LineReader {
 public:
  // path: a file, a pipe, a FIFO with a writer, a terminal, or "-" for standard input. Throws Error when it
  // cannot be opened, or is a directory or a device. max_stream_bytes: what next() gives at most, in all, of
  // a pipe or a gzip file; 0: no limit.
  explicit LineReader(std::string path, size_t max_line_bytes = kMaxLineBytes, uint64_t max_stream_bytes = 0);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  // Gives the next line without its end, or false at the end of the file. A line over the limit comes empty,
  // as fault() too_long; one that is not UTF-8 comes whole, as fault() bad_utf8. Throws Error when reading
  // fails, when a line has no end within 256 MiB, and past max_stream_bytes.
  bool next(std::string& line);

  // Whether more has arrived: false means that the writer may be waiting for an answer.
  bool waiting() const;

  int64_t line_number() const { return line_number_; }  // of the last line given, from 1
  LineFault fault() const { return fault_; }
  // What is wrong with the last line, for people: "train.en, line 7: not UTF-8 at byte 13 (0xff)".
  std::string fault_text() const;
  // The file's name as messages show it.
  const std::string& name() const { return name_; }
  // "train.en, line 7"
  std::string place() const;

 private:
  class Bytes;
  std::string name_;
  std::unique_ptr<Bytes> bytes_;
  size_t max_line_bytes_;
  int64_t line_number_ = 0;
  LineFault fault_ = LineFault::none;
  size_t bad_at_ = 0;
  unsigned char bad_byte_ = 0;
};

// Calls visit(line, number) for each line of a text in memory, numbers counted from 1.
template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace fovea::data
