#include "cli/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fovea::cli {
namespace {

// Insertions, deletions and replacements that turn a into b.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  size_t fewest = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t count = edits(word, name);
    if (count < fewest && count < name.size()) {
      fewest = count;
      best = name;
    }
  }
  return best;
}

}  // namespace fovea::cli
