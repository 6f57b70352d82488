// Standard input answered line by line: in the order of the lines, as soon as an answer is known.
#pragma once

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/lines.h"

namespace fovea::cli {

// Calls answer(lines, number of the first), which prints one answer for each line: as many lines at once as
// are waiting, so whoever types a line, or waits for the answer to one, gets it at once. Throws Error at the
// first line that cannot be used, after those before it were answered.
template <class Answer>
void answer_lines(size_t most_at_once, size_t max_line_bytes, Answer answer) {
  data::LineReader reader("-", max_line_bytes);
  std::vector<std::string> waiting;
  std::string text;
  int64_t answered = 0;
  while (std::cout.good()) {
    const bool more = reader.next(text);
    const bool usable = more && reader.fault() == data::LineFault::none;
    if (usable) waiting.push_back(text);
    if (!waiting.empty() && (!usable || !reader.waiting() || waiting.size() >= most_at_once)) {
      answer(waiting, answered);
      std::cout << std::flush;
      answered += static_cast<int64_t>(waiting.size());
      waiting.clear();
    }
    require(usable || !more, reader.fault_text());
    if (!more) break;
  }
}

}  // namespace fovea::cli
