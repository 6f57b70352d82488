// Parallel text: pairs of a source and a target sentence, from two files or one with tabs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/lines.h"

namespace fovea::data {

struct CorpusOptions {
  // Drop and count lines that cannot be used, instead of stopping at the first.
  bool skip_bad = false;
  size_t max_line_bytes = kMaxLineBytes;
  // Columns of a tab-separated file, from 1. All its lines must have as many columns as the first.
  int source_column = 1;
  int target_column = 2;
};

// How messages about a line that skip_bad would drop end.
inline constexpr const char* kSkipHint = "; correct it, or drop such lines with --skip-bad";

// Pairs (or texts) dropped because of skip_bad, by their first fault.
struct Skipped {
  int64_t bad_utf8 = 0;
  int64_t empty = 0;
  int64_t too_long = 0;
  int64_t wrong_columns = 0;
  int64_t bad_quotes = 0;
  int64_t bad_labels = 0;

  int64_t total() const { return bad_utf8 + empty + too_long + wrong_columns + bad_quotes + bad_labels; }
  // "3 pairs dropped: 2 empty, 1 not UTF-8"
  std::string text(const char* what = "pair") const;
  friend bool operator==(const Skipped&, const Skipped&) = default;
};

struct ParallelText {
  std::vector<std::string> source;
  std::vector<std::string> target;  // as many as source
  Skipped skipped;

  int64_t size() const { return static_cast<int64_t>(source.size()); }
};

// Line i of one file belongs to line i of the other. Throws Error naming file and line for what is not UTF-8,
// empty (or only white space) or too long, unless skip_bad; and always for unequal line counts, since then no
// line is known to belong to another. An empty corpus is an error too.
ParallelText read_parallel(const std::string& source_path, const std::string& target_path,
                           const CorpusOptions& options = {});

// One file, source and target in two of its columns; other columns are ignored.
ParallelText read_parallel_tsv(const std::string& path, const CorpusOptions& options = {});

// All lines of a file, empty ones included: what a score or a translation reads. Throws Error naming file and
// line for what is not UTF-8 or too long.
std::vector<std::string> read_lines(const std::string& path, size_t max_line_bytes = kMaxLineBytes);

}  // namespace fovea::data
