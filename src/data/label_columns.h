// Which columns of a file hold the labels and the texts, and whether its first row names them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fovea::data {

struct LabelColumns {
  size_t label = 0, text = 1;      // places, from 0
  std::optional<size_t> pair;      // of the second text, where rows hold pairs
  size_t count = 2;                // columns of a row
  bool separated = true;           // by tabs or commas; false: lines that begin with their label
  std::vector<std::string> names;  // of the header row; empty: there is none

  // For people: `train.tsv: label is column 1 "y", text is column 2 "text"; first row is a header`.
  std::string note(const std::string& path) const;
};

// What the user said of the columns: names (of the first row) or numbers (from 1); empty: nothing.
struct ColumnRequest {
  std::string label, text;
  const LabelColumns* like = nullptr;  // columns of the training file, where this one goes with it
  bool pairs = false;                  // rows hold two texts
  std::string pair = {};               // the column of the second one
  bool numbers = false;                // labels are numbers
};

// Chooses columns by the request, else by the names in the first row, else by what the columns hold: labels
// are the column with the fewest different values (but more than one), texts the longest of the others; of
// pairs, the two longest. Sets
// `names` where the first row is certainly a header: names that were requested or known, or those of `like`.
// rows: the first ones of the file, of as many fields each; at least one. Throws Error, beginning with
// `path`, for a request that cannot be met and for a second column of texts when none was requested.
LabelColumns choose_columns(std::span<const std::vector<std::string>* const> rows, bool separated,
                            const ColumnRequest& request, const std::string& path);

// Whether a first row that choose_columns() left undecided is a header. labels, texts: those of all rows, the
// first one included. It is when its label is on no other row, both of its fields look like names (a letter,
// then letters, digits, _ . -), and one of these holds:
// - one of the two is a known name of a column;
// - all other labels are numbers;
// - there are at least ten other rows, their labels occur twice on average, and nine in ten of their texts
//   do not look like names.
// So a small file in which each label occurs once has a header only where names or numbers show it.
bool first_row_is_header(std::span<const std::string> labels, std::span<const std::string> texts);

}  // namespace fovea::data
