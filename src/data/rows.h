// Rows of a text file: fields between commas (CSV as RFC 4180 has it) or tabs, or a label and the rest of the
// line.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "data/lines.h"

namespace fovea::data {

// Why a row cannot be used.
enum class RowFault { none, bad_utf8, too_long, bad_quotes };

struct Row {
  std::vector<std::string> fields;
  std::string place;  // "train.csv, line 7", where it begins
  int64_t line = 0;   // that line's number, from 1
  RowFault fault = RowFault::none;
  std::string fault_text;  // for people, with the place
};

// Files that end in .csv have commas. Others have tabs if their first line has one; if not, each line is a
// label (with or without fastText's __label__) and a text.
class RowReader {
 public:
  // A quoted field or a line is at most max_bytes long.
  RowReader(const std::string& path, size_t max_bytes);

  // False at the end; blank lines are passed over. Throws Error when reading fails.
  bool next(Row& row);
  // Whether rows have columns to choose from; known after the first.
  bool has_columns() const { return csv_ || tabs_; }
  // Whether a line began with fastText's __label__.
  bool has_marked_labels() const { return marked_; }
  const std::string& name() const { return reader_.name(); }

 private:
  struct Line {
    std::string text;
    int64_t number = 0;
    LineFault fault = LineFault::none;
    std::string fault_text;
  };
  bool take_line(Line& line);
  // Gives lines back that a wrong quote had taken into its row.
  void give_back(std::vector<Line> lines);
  std::string place_of(int64_t line_number) const;
  void split_tabs(const Line& line, Row& row);
  void split_label(const Line& line, Row& row);
  void split_csv(Line line, Row& row);

  LineReader reader_;
  size_t max_bytes_;
  bool csv_ = false, known_ = false, tabs_ = false, marked_ = false;
  std::deque<Line> given_back_;
  uint64_t given_back_bytes_ = 0;  // in all
};

}  // namespace fovea::data
