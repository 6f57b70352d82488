// Splits the lines of CSV, tab-separated and label-first files into fields; a quoted CSV field may span lines.
#include "data/rows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/text.h"

namespace fovea::data {
namespace {

constexpr std::string_view kFastText = "__label__";
// Lines are read again after a wrong quote; not without end, however many a file has.
constexpr uint64_t kMostGivenBack = uint64_t{64} << 20;

RowFault row_fault(LineFault fault) {
  return fault == LineFault::bad_utf8   ? RowFault::bad_utf8
         : fault == LineFault::too_long ? RowFault::too_long
                                        : RowFault::none;
}

// The start of what follows a quote, for a message.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 20;
  size_t length = std::min(text.size(), kMost);
  while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;
  return "'" + std::string(text.substr(0, length)) + (length < text.size() ? "...'" : "'");
}

// One row's fields, character by character.
class CsvFields {
 public:
  enum class State { start, plain, quoted, closed };

  // Takes a line in. Gives the place of a character that may not follow a closing quote, if there is one.
  std::optional<size_t> take(std::string_view line, int64_t number) {
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (state_ == State::quoted) {
        if (c != '"') {
          field_ += c;
        } else if (i + 1 < line.size() && line[i + 1] == '"') {
          field_ += line[i++];
        } else {
          state_ = State::closed;
        }
      } else if (c == ',') {
        end_field();
      } else if (state_ == State::closed) {
        if (c != ' ' && c != '\t') return i;
      } else if (c == '"' && state_ == State::start) {
        state_ = State::quoted;
        opened_ = number;
      } else {
        field_ += c;
        state_ = State::plain;
      }
    }
    return {};
  }

  bool goes_on() const { return state_ == State::quoted; }
  void add_line_break() { field_ += '\n'; }
  int64_t opened() const { return opened_; }  // the line of the last opening quote
  size_t bytes() const { return field_.size(); }

  std::vector<std::string> finish() {
    end_field();
    return std::move(fields_);
  }

 private:
  void end_field() {
    fields_.push_back(std::exchange(field_, {}));
    state_ = State::start;
  }

  std::vector<std::string> fields_;
  std::string field_;
  State state_ = State::start;
  int64_t opened_ = 0;
};

}  // namespace

RowReader::RowReader(const std::string& path, size_t max_bytes)
    : reader_(path, max_bytes, kMaxStreamBytes), max_bytes_(max_bytes) {
  const std::string_view name = path;
  csv_ = name.ends_with(".csv") || name.ends_with(".csv.gz");
}

bool RowReader::take_line(Line& line) {
  if (!given_back_.empty()) {
    line = std::move(given_back_.front());
    given_back_.pop_front();
    return true;
  }
  if (!reader_.next(line.text)) return false;
  line.number = reader_.line_number();
  line.fault = reader_.fault();
  line.fault_text = line.fault == LineFault::none ? "" : reader_.fault_text();
  return true;
}

void RowReader::give_back(std::vector<Line> lines) {
  for (const Line& line : lines) given_back_bytes_ += line.text.size();
  require(given_back_bytes_ <= kMostGivenBack, name(),
          ": too many quotes that do not close; is it quoted as RFC 4180 has it?");
  given_back_.insert(given_back_.begin(), std::make_move_iterator(lines.begin()),
                     std::make_move_iterator(lines.end()));
}

std::string RowReader::place_of(int64_t line_number) const {
  return message(name(), ", line ", line_number);
}

bool RowReader::next(Row& row) {
  row = {};
  Line line;
  do {
    if (!take_line(line)) return false;
  } while (line.fault == LineFault::none && strip(line.text).empty());
  row.place = place_of(line.number);
  row.line = line.number;
  row.fault = row_fault(line.fault);
  row.fault_text = line.fault_text;
  if (row.fault != RowFault::none) return true;
  if (!csv_ && !std::exchange(known_, true)) tabs_ = line.text.find('\t') != std::string::npos;
  if (csv_)
    split_csv(std::move(line), row);
  else if (tabs_)
    split_tabs(line, row);
  else
    split_label(line, row);
  return true;
}

void RowReader::split_tabs(const Line& line, Row& row) {
  std::string_view rest = line.text;
  for (size_t tab; (tab = rest.find('\t')) != std::string_view::npos; rest.remove_prefix(tab + 1))
    row.fields.emplace_back(rest.substr(0, tab));
  row.fields.emplace_back(rest);
}

void RowReader::split_label(const Line& line, Row& row) {
  std::string_view rest = strip(line.text);
  if (rest.starts_with(kFastText)) {
    rest.remove_prefix(kFastText.size());
    marked_ = true;
  }
  const std::vector<std::string_view> words = split_words(rest);
  row.fields.emplace_back(words.empty() ? std::string_view() : words[0]);
  row.fields.emplace_back(words.size() > 1 ? rest.substr(static_cast<size_t>(words[1].data() - rest.data()))
                                           : std::string_view());
}

// A quoted field may go on over several lines. Where its quote turns out to be wrong, only the line that
// opened the row is lost: the next ones are rows of their own again.
void RowReader::split_csv(Line line, Row& row) {
  CsvFields fields;
  std::vector<Line> more;
  const auto refuse = [&](RowFault fault, std::string text) {
    row.fault = fault;
    row.fault_text = std::move(text);
    give_back(std::move(more));
  };
  for (;;) {
    if (const auto wrong = fields.take(line.text, line.number))
      return refuse(
          RowFault::bad_quotes,
          message(place_of(fields.opened()), ": the quote that opens here closes ",
                  line.number == fields.opened() ? std::string() : message("on line ", line.number, " "),
                  "before ", shown(std::string_view(line.text).substr(*wrong)),
                  ", wanted a comma or the end of the row after it; a quote within quotes is written twice"));
    if (!fields.goes_on()) break;
    fields.add_line_break();
    if (fields.bytes() > max_bytes_)
      return refuse(RowFault::too_long, message(place_of(fields.opened()), ": a quoted field of more than ",
                                                max_bytes_, " bytes; does its quote close?"));
    if (!take_line(line))
      return refuse(RowFault::bad_quotes,
                    message(place_of(fields.opened()), ": the quote that opens here never closes"));
    if (line.fault != LineFault::none) return refuse(row_fault(line.fault), line.fault_text);
    more.push_back(line);
  }
  row.fields = fields.finish();
}

}  // namespace fovea::data
