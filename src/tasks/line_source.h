// Standard input or a file, line by line, for programs that answer each line as it comes.
#pragma once

#include <cstdint>
#include <string>

#include "data/lines.h"

namespace fovea::tasks {

struct SourceLine {
  std::string text;        // UTF-8, without the line's end; empty when it cannot be used
  std::string fault = {};  // why it cannot be used: "standard input, line 3: not UTF-8 at byte 1 (0xff)"
  int64_t number = 0;      // counted from 0
  std::string place = {};  // "standard input, line 3"
};

// Not thread-safe: one thread reads.
class LineSource {
 public:
  static constexpr size_t kLongestLine = data::kMaxLineBytes;  // one sentence
  static constexpr size_t kLongestText = size_t{1} << 20;      // a whole text on one line

  // path: a file, plain or gzip, or "-" for standard input. Throws FileError when it cannot be opened.
  LineSource(const std::string& path, size_t max_line_bytes);

  // False at the end. Throws FileError when reading fails.
  bool next(SourceLine& line);
  // Whether more has arrived: false means that the writer may be waiting for an answer.
  bool waiting() const { return reader_.waiting(); }

 private:
  data::LineReader reader_;
};

}  // namespace fovea::tasks
