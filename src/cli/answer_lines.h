// Inputs answered one after the other: in their order, as soon as an answer is known; what to do with those
// that cannot be used, and what is said of them at the end.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

#include "tasks/open.h"

namespace fovea::cli {

// What happens to an input that cannot be used (not UTF-8, too long, no picture).
enum class OnError {
  stop,   // the program ends with exit status 2
  empty,  // print an empty answer in its place
  skip,   // it gets none
};

// --on-error stop|empty|skip.
void add_on_error(CLI::App& verb, OnError& on_error);

// Counts inputs that were unusable or too long, for a report on standard error.
class InputReport {
 public:
  explicit InputReport(std::string unit) : unit_(std::move(unit)) {}
  void count_bad(const std::string& why);
  void count_cut(int64_t tokens);
  int64_t bad() const { return bad_; }
  // hint: ends the line about inputs that were cut; may be empty.
  void print(const std::string& hint) const;

 private:
  std::string unit_;  // "line"
  int64_t bad_ = 0, cut_ = 0, tokens_ = 0;
  std::string first_bad_;
};

struct LineFlags {
  size_t lines_at_once = 512;
  size_t max_line_bytes = 0;
  OnError on_error = OnError::stop;
  std::string cut_hint = {};                      // how to read more of a line that was cut
  std::string path = "-";                         // what is read; "-": standard input
  bool (*skip)(std::string_view line) = nullptr;  // lines that are passed over; null: none
};

// Gets each line with its answer, whose `error` is set where the line cannot be used;
// number: the line's, counted from 0.
using PrintAnswer =
    std::function<void(const tasks::Input& line, const tasks::Answer& answer, int64_t number)>;

// Answers as many lines at once as are waiting, so that someone who types a line, or waits for its answer, gets
// it at once. Throws Error at the first line that cannot be used, after those before it were answered, unless
// flags.on_error says otherwise.
void answer_lines(const tasks::OpenFolder& model, const tasks::AnswerOptions& options, const LineFlags& flags,
                  const PrintAnswer& print);

}  // namespace fovea::cli
