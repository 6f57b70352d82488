#include "data/corpus.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "data/text.h"

namespace fovea::data {
namespace {

bool blank(std::string_view text) {
  return strip(text).empty();
}

// Looks at a line just read. Gives true when it can be used; otherwise counts it, or throws.
bool usable(const LineReader& reader, const CorpusOptions& options, Skipped& skipped) {
  if (reader.fault() == LineFault::none) return true;
  require(options.skip_bad, reader.fault_text(), kSkipHint);
  ++(reader.fault() == LineFault::bad_utf8 ? skipped.bad_utf8 : skipped.too_long);
  return false;
}

bool filled(std::string_view text, const std::string& place, const CorpusOptions& options, Skipped& skipped) {
  if (!blank(text)) return true;
  require(options.skip_bad, place, ": empty", kSkipHint);
  ++skipped.empty;
  return false;
}

int64_t count_to_end(LineReader& reader) {
  std::string line;
  while (reader.next(line)) continue;
  return reader.line_number();
}

void require_some(const ParallelText& text, const std::string& files) {
  require(text.size() > 0, files,
          text.skipped.total() == 0 ? ": no lines" : ": no usable pair; " + text.skipped.text());
}

std::vector<std::string_view> split_columns(std::string_view line) {
  std::vector<std::string_view> columns;
  for (size_t tab; (tab = line.find('\t')) != std::string_view::npos; line.remove_prefix(tab + 1))
    columns.push_back(line.substr(0, tab));
  columns.push_back(line);
  return columns;
}

const char* plural(size_t count) {
  return count == 1 ? "" : "s";
}

}  // namespace

std::string Skipped::text(const char* what) const {
  std::string reasons;
  const auto add = [&](int64_t count, const char* reason) {
    if (count > 0) reasons += message(reasons.empty() ? ": " : ", ", count, " ", reason);
  };
  add(empty, "empty");
  add(bad_utf8, "not UTF-8");
  add(too_long, "too long");
  add(wrong_columns, "with the wrong number of columns");
  add(bad_quotes, "with quotes that do not close");
  add(bad_labels, "with a label that cannot be read");
  return message(total(), " ", what, plural(total()), " dropped", reasons);
}

ParallelText read_parallel(const std::string& source_path, const std::string& target_path,
                           const CorpusOptions& options) {
  LineReader source(source_path, options.max_line_bytes, kMaxStreamBytes),
      target(target_path, options.max_line_bytes, kMaxStreamBytes);
  ParallelText text;
  std::string source_line, target_line;
  for (;;) {
    const bool more_source = source.next(source_line), more_target = target.next(target_line);
    if (more_source != more_target) {
      const int64_t sources = count_to_end(source), targets = count_to_end(target);
      const bool short_source = sources < targets;
      fail(short_source ? target.name() : source.name(), ", line ", std::min(sources, targets) + 1,
           ": no line to pair it with, ", source.name(), " has ", sources, " lines and ", target.name(),
           " has ", targets);
    }
    if (!more_source) break;
    if (!usable(source, options, text.skipped) || !usable(target, options, text.skipped)) continue;
    if (!filled(source_line, source.place(), options, text.skipped) ||
        !filled(target_line, target.place(), options, text.skipped))
      continue;
    text.source.push_back(source_line);
    text.target.push_back(target_line);
  }
  require_some(text, source.name() + " and " + target.name());
  return text;
}

ParallelText read_parallel_tsv(const std::string& path, const CorpusOptions& options) {
  require(options.source_column >= 1 && options.target_column >= 1 &&
              options.source_column != options.target_column,
          "columns ", options.source_column, " and ", options.target_column,
          " requested as source and target, wanted two different ones counted from 1");
  const auto source = static_cast<size_t>(options.source_column - 1),
             target = static_cast<size_t>(options.target_column - 1), last = std::max(source, target);
  LineReader reader(path, options.max_line_bytes, kMaxStreamBytes);
  ParallelText text;
  std::string line;
  size_t wanted = 0;  // columns of the first usable line
  while (reader.next(line)) {
    if (!usable(reader, options, text.skipped)) continue;
    if (!filled(line, reader.place(), options, text.skipped)) continue;
    const std::vector<std::string_view> columns = split_columns(line);
    if (wanted == 0 && columns.size() > last) wanted = columns.size();
    if (columns.size() <= last || columns.size() != wanted) {
      require(options.skip_bad, reader.place(), ": ", columns.size(), " tab-separated column",
              plural(columns.size()),
              wanted == 0 ? message(", wanted at least ", last + 1)
                          : message(", wanted ", wanted, " as in the first line"),
              kSkipHint);
      ++text.skipped.wrong_columns;
      continue;
    }
    if (!filled(columns[source], message(reader.place(), ", column ", source + 1), options, text.skipped) ||
        !filled(columns[target], message(reader.place(), ", column ", target + 1), options, text.skipped))
      continue;
    text.source.emplace_back(columns[source]);
    text.target.emplace_back(columns[target]);
  }
  require_some(text, reader.name());
  return text;
}

std::vector<std::string> read_lines(const std::string& path, size_t max_line_bytes) {
  LineReader reader(path, max_line_bytes, kMaxStreamBytes);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) {
    require(reader.fault() == LineFault::none, reader.fault_text());
    lines.push_back(line);
  }
  return lines;
}

}  // namespace fovea::data
