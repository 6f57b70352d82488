// A table of numbers over time: a CSV file with a header and one row for each time step, oldest first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/number_text.h"

namespace fovea::data {

struct SeriesTable {
  std::vector<std::string> columns;  // of numbers
  std::vector<float> values;         // [rows, columns]
  std::string time_column = {};      // its name; empty: the file has none
  std::vector<int64_t> times = {};   // [rows], as parse_time(); empty without a time column
  std::vector<int64_t> lines = {};   // [rows], of the file, from 1; empty: not read from one
  int64_t rows() const { return columns.empty() ? 0 : static_cast<int64_t>(values.size() / columns.size()); }
};

struct SeriesTableOptions {
  // By name; it may hold numbers that stand for times too (parse_time_number). Empty: the first column, where its first
  // value is a point in time, or such a number in a column that is named so (time, timestamp, date, ...).
  std::string time_column = {};
  // Those to read, in this order. Empty: every column but the one of times.
  std::vector<std::string> columns = {};
  Missing missing = Missing::stop;
};

// A column without a name, such as the index that pandas writes, is not read, unless it is the first and contains times;
// the column after such an index counts as the first.
// Fields are between commas; between semicolons or tabs where the header has no comma. One that contains the separator is
// in double quotes, with a quote inside written twice. Throws Error, naming
// file, line and column, for a row with another number of fields, a quote elsewhere, a field that is no number, a value that is
// missing (unless options say otherwise), times that do not increase, and columns that the file lacks.
// path: plain or gzip.
SeriesTable read_series_table(const std::string& path, const SeriesTableOptions& options = {});
// The same of a text; `name` stands for the file in messages.
SeriesTable parse_series_table(std::string_view text, const std::string& name,
                               const SeriesTableOptions& options = {});

// The same rows with these columns alone, in this order. Throws Error, beginning with `name`, when one is lacking.
SeriesTable with_columns(const SeriesTable& table, const std::vector<std::string>& columns,
                         const std::string& name);

// Names separated by commas, without the spaces around them. Throws Error, beginning with `where`, on an empty
// name and on one that appears twice.
std::vector<std::string> parse_names(std::string_view names, const std::string& where);

}  // namespace fovea::data
