// Parses a CSV table of numbers over time: its columns, their values and the time of each row.
#include "data/series_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/fields.h"
#include "data/lines.h"
#include "data/text.h"
#include "data/time_features.h"
#include "io/json.h"

namespace fovea::data {
namespace {

constexpr size_t kLongestRow = size_t{4} << 20;
constexpr size_t kMostColumns = 65536;
constexpr size_t kMostValues = size_t{1} << 30;

// Takes a field in double quotes off the beginning of `rest`, up to what follows its closing quote. Throws Error,
// beginning with `place`.
std::string take_quoted(std::string_view& rest, char separator, const std::string& place) {
  std::string field;
  for (size_t i = 1;; ++i) {
    require(
        i < rest.size(), place, ": got ", in_quotes(rest),
        ", whose quote does not close in its line; wanted one before the separator or the end of the line");
    if (rest[i] != '"') {
      field += rest[i];
    } else if (i + 1 < rest.size() && rest[i + 1] == '"') {
      field += rest[i++];
    } else {
      rest.remove_prefix(i + 1);
      break;
    }
  }
  require(
      rest.empty() || rest[0] == separator, place, ": got ", in_quotes(rest),
      " after a closing quote, wanted the separator or the end of the line; write a quote within quotes twice");
  return field;
}

// Fields of one line; one in double quotes may hold the separator. Throws Error, beginning with `place`, for a quote
// that does not open or close a field: a number must not change because a quote in it is left out.
std::vector<std::string> split_fields(std::string_view line, char separator, const std::string& place) {
  std::vector<std::string> fields;
  for (std::string_view rest = line;; rest.remove_prefix(1)) {
    const size_t begin = rest.find_first_not_of(' ');
    if (begin != std::string_view::npos && rest[begin] == '"') {
      rest.remove_prefix(begin);
      fields.emplace_back(strip(take_quoted(rest, separator, place)));
    } else {
      const std::string_view field = strip(rest.substr(0, rest.find(separator)));
      require(field.find('"') == std::string_view::npos, place, ": got ", in_quotes(field),
              ", wanted quotes around the whole field or none");
      fields.emplace_back(field);
      rest.remove_prefix(std::min(rest.find(separator), rest.size()));
    }
    if (rest.empty()) return fields;
  }
}

// Whether a column's name says that numbers in it are times.
bool names_time(const std::string& column) {
  const std::string name = lowercase(column);
  return name == "time" || name == "timestamp" || name == "date" || name == "datetime" || name == "epoch" ||
         name == "ds";
}

size_t column_place(const std::vector<std::string>& columns, const std::string& column,
                    const std::string& name) {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found != columns.end()) return static_cast<size_t>(found - columns.begin());
  fail(name, ": no column ", in_quotes(column), name_hint(column, {columns.begin(), columns.end()}));
}

// Takes the lines of a file one after the other.
class TableReader {
 public:
  TableReader(std::string name, const SeriesTableOptions& options)
      : name_(std::move(name)), options_(options) {}

  void take(std::string_view line, int64_t number) {
    if (strip(line).empty()) return;
    if (header_.empty()) return take_header(line, number);
    const auto place = [&] { return message(name_, ", line ", number); };
    const std::vector<std::string> fields = split_fields(line, separator_, place());
    require(fields.size() == header_.size(), place(), ": ", fields.size(), " fields, wanted ", header_.size(),
            " as in the header");
    if (!chosen_) choose(fields);
    if (time_ >= 0) take_time(fields[static_cast<size_t>(time_)], place());
    require(table_.values.size() + places_.size() <= kMostValues, place(), ": more than ", kMostValues,
            " numbers");
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::string& field = fields[places_[i]];
      std::optional<float> value = number_of(field);
      if (!value && is_missing(field)) value = filled(i, place());
      if (!value) refuse(field, i, place());
      last_[i] = *value;
      table_.values.push_back(*value);
    }
    table_.lines.push_back(number);
  }

  SeriesTable finish() {
    require(!header_.empty(), name_, " is empty, wanted a header and one row for each time step");
    require(table_.rows() > 0, name_, ": a header and no rows, wanted one row for each time step");
    fill_beginnings();
    return std::move(table_);
  }

 private:
  void take_header(std::string_view line, int64_t number) {
    separator_ = line.find(',') != std::string_view::npos   ? ','
                 : line.find(';') != std::string_view::npos ? ';'
                                                            : '\t';
    header_ = split_fields(line, separator_, message(name_, ", line ", number));
    require(header_.size() <= kMostColumns, name_, ": ", header_.size(), " columns, wanted at most ",
            kMostColumns);
    for (const std::string& column : header_)
      require(!number_of(column) && !parse_time(column), name_, ", line ", number, ": got ",
              in_quotes(column), ", wanted a header: the first line must name the columns");
    std::vector<std::string> sorted = header_;
    std::erase(sorted, "");
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    require(twice == sorted.end(), name_, ": two columns are named ",
            twice == sorted.end() ? "" : in_quotes(*twice));
  }

  size_t place_of(const std::string& column) const { return column_place(header_, column, name_); }

  // Which columns hold times and numbers, from the first row.
  void choose(const std::vector<std::string>& first) {
    chosen_ = true;
    if (header_[0].empty() && parse_time(first[0]))
      header_[0] = std::find(header_.begin(), header_.end(), "time") == header_.end() ? "time" : "index";
    const size_t begin = header_[0].empty() && header_.size() > 1 ? 1 : 0;  // after an index without a name
    if (!options_.time_column.empty())
      time_ = static_cast<int64_t>(place_of(options_.time_column));
    else if (parse_time(first[begin]) || (names_time(header_[begin]) && parse_time_number(first[begin])))
      time_ = static_cast<int64_t>(begin);
    if (time_ >= 0) table_.time_column = header_[static_cast<size_t>(time_)];
    for (const std::string& column : options_.columns) places_.push_back(place_of(column));
    if (options_.columns.empty())
      for (size_t i = 0; i < header_.size(); ++i)
        if (static_cast<int64_t>(i) != time_ && !header_[i].empty()) places_.push_back(i);
    require(!places_.empty(), name_, ": no column of numbers");
    for (const size_t place : places_) {
      require(static_cast<int64_t>(place) != time_, name_, ": the column ", in_quotes(header_[place]),
              " contains times, wanted numbers");
      table_.columns.push_back(header_[place]);
    }
    last_.assign(places_.size(), std::numeric_limits<float>::quiet_NaN());
  }

  void take_time(const std::string& field, const std::string& place) {
    auto time = parse_time(field);
    if (!time && (!options_.time_column.empty() || names_time(table_.time_column)))
      time = parse_time_number(field);
    require(time.has_value(), place, ", column ", in_quotes(table_.time_column), ": got ", in_quotes(field),
            ", wanted a time such as 2016-07-01 13:00:00");
    require(table_.times.empty() || *time > table_.times.back(), place, ": ", in_quotes(field),
            " is not later than the row before; wanted rows in the order of time, the oldest first");
    table_.times.push_back(*time);
  }

  // Says what was wanted instead, as far as the field tells what it is.
  [[noreturn]] void refuse(const std::string& field, size_t column, const std::string& place) const {
    require(!is_too_large(field), place, ", column ", in_quotes(table_.columns[column]), ": got ",
            in_quotes(field), kTooLarge);
    const auto is_made_of = [&](const char* characters) {
      return field.find_first_not_of(characters) == std::string::npos;
    };
    const char* advice = "; --target names the columns to read, where others hold text";
    if (is_made_of("0123456789.+-eE"))
      advice = "";
    else if (is_made_of("0123456789.,+- "))
      advice = " with a decimal point, without commas and spaces";
    else if (is_made_of("0123456789/:-. TZ"))
      advice = "; times begin with the year, such as 2016-07-01 13:00, and --time-column names their column";
    fail(place, ", column ", in_quotes(table_.columns[column]), ": got ", in_quotes(field),
         ", wanted a number", advice);
  }

  float filled(size_t column, const std::string& place) const {
    require(options_.missing == Missing::last, place, ", column ", in_quotes(table_.columns[column]),
            ": the value is missing; fill it, or train with --missing last");
    return last_[column];
  }

  // What is missing before the first value of a column becomes that value.
  void fill_beginnings() {
    const auto width = static_cast<int64_t>(places_.size()), rows = table_.rows();
    for (int64_t c = 0; c < width; ++c) {
      int64_t first = 0;
      while (first < rows && std::isnan(table_.values[static_cast<size_t>(first * width + c)])) ++first;
      require(first < rows, name_, ": the column ", in_quotes(table_.columns[static_cast<size_t>(c)]),
              " has no values");
      for (int64_t r = 0; r < first; ++r)
        table_.values[static_cast<size_t>(r * width + c)] =
            table_.values[static_cast<size_t>(first * width + c)];
    }
  }

  std::string name_;
  SeriesTableOptions options_;
  char separator_ = ',';
  std::vector<std::string> header_;
  bool chosen_ = false;
  int64_t time_ = -1;
  std::vector<size_t> places_;
  std::vector<float> last_;
  SeriesTable table_;
};

}  // namespace

SeriesTable read_series_table(const std::string& path, const SeriesTableOptions& options) {
  LineReader lines(path, kLongestRow, kMaxStreamBytes);
  TableReader table(lines.name(), options);
  for (std::string line; lines.next(line);) {
    require(lines.fault() == LineFault::none, lines.fault_text());
    table.take(line, lines.line_number());
  }
  return table.finish();
}

SeriesTable parse_series_table(std::string_view text, const std::string& name,
                               const SeriesTableOptions& options) {
  require(is_utf8(text), name, " is not UTF-8");
  TableReader table(name, options);
  for_each_line(text, [&](std::string_view line, int64_t number) { table.take(line, number); });
  return table.finish();
}

SeriesTable with_columns(const SeriesTable& table, const std::vector<std::string>& columns,
                         const std::string& name) {
  SeriesTable chosen{columns, {}, table.time_column, table.times, table.lines};
  std::vector<size_t> places;
  for (const std::string& column : columns) places.push_back(column_place(table.columns, column, name));
  const auto rows = static_cast<size_t>(table.rows());
  for (size_t r = 0; r < rows; ++r)
    for (const size_t place : places) chosen.values.push_back(table.values[r * table.columns.size() + place]);
  return chosen;
}

std::vector<std::string> parse_names(std::string_view names, const std::string& where) {
  std::vector<std::string> list;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    const std::string name(strip(names.substr(0, comma)));
    require(!name.empty(), where, ": an empty name; wanted names separated by commas");
    require(std::find(list.begin(), list.end(), name) == list.end(), where, ": ", in_quotes(name),
            " appears twice");
    list.push_back(name);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return list;
}

}  // namespace fovea::data
