#include "infer/class_scores.h"

#include "base/error.h"

namespace fovea::infer {

ClassScores score_classes(std::span<const int32_t> told, std::span<const int32_t> wanted, int64_t classes) {
  require(told.size() == wanted.size() && !told.empty(), "scores: ", told.size(), " classes told for ",
          wanted.size(), " texts, wanted as many, and at least one");
  ClassScores scores;
  scores.classes.resize(static_cast<size_t>(classes));
  scores.confusion.resize(static_cast<size_t>(classes * classes));
  const auto cell = [&](int64_t row, int64_t column) -> int64_t& {
    return scores.confusion[static_cast<size_t>(row * classes + column)];
  };
  for (size_t i = 0; i < told.size(); ++i) ++cell(wanted[i], told[i]);
  const auto share = [](int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  int64_t right = 0;
  for (int64_t c = 0; c < classes; ++c) {
    ClassScore& one = scores.classes[static_cast<size_t>(c)];
    int64_t named = 0;
    for (int64_t other = 0; other < classes; ++other) {
      one.count += cell(c, other);
      named += cell(other, c);
    }
    right += cell(c, c);
    one.precision = share(cell(c, c), named);
    one.recall = share(cell(c, c), one.count);
    one.f1 = share(2 * cell(c, c), named + one.count);
    scores.macro_f1 += one.f1 / static_cast<double>(classes);
  }
  scores.accuracy = share(right, static_cast<int64_t>(told.size()));
  return scores;
}

}  // namespace fovea::infer
