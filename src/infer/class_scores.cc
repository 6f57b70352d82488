#include "infer/class_scores.h"

#include "base/error.h"

namespace fovea::infer {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ClassScores score_classes(std::span<const int32_t> predictions, std::span<const int32_t> targets,
                          int64_t classes) {
  require(predictions.size() == targets.size() && !predictions.empty(), "scores: ", predictions.size(),
          " classes predicted for ", targets.size(), " texts, wanted as many, and at least one");
  ClassScores scores;
  scores.classes.resize(static_cast<size_t>(classes));
  scores.confusion.resize(static_cast<size_t>(classes * classes));
  const auto cell = [&](int64_t row, int64_t column) -> int64_t& {
    return scores.confusion[static_cast<size_t>(row * classes + column)];
  };
  for (size_t i = 0; i < predictions.size(); ++i) ++cell(targets[i], predictions[i]);
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
  scores.accuracy = share(right, static_cast<int64_t>(predictions.size()));
  return scores;
}

LabelSetScores score_label_sets(std::span<const uint8_t> predictions, std::span<const uint8_t> targets,
                                int64_t labels) {
  require(labels > 0 && predictions.size() == targets.size() && !predictions.empty() &&
              predictions.size() % static_cast<size_t>(labels) == 0,
          "scores: ", predictions.size(), " decisions for ", targets.size(), " of ", labels,
          " labels, wanted as many, and at least one text");
  LabelSetScores scores;
  scores.labels.resize(static_cast<size_t>(labels));
  std::vector<int64_t> right(static_cast<size_t>(labels)), named(static_cast<size_t>(labels));
  const size_t texts = predictions.size() / static_cast<size_t>(labels);
  for (size_t t = 0; t < texts; ++t) {
    bool all = true;
    for (size_t c = 0; c < static_cast<size_t>(labels); ++c) {
      const bool said = predictions[t * static_cast<size_t>(labels) + c] != 0;
      const bool is = targets[t * static_cast<size_t>(labels) + c] != 0;
      scores.labels[c].count += is;
      named[c] += said;
      right[c] += said && is;
      all = all && said == is;
    }
    scores.exact += all ? 1.0 / static_cast<double>(texts) : 0;
  }
  int64_t all_right = 0, all_said = 0;
  for (size_t c = 0; c < static_cast<size_t>(labels); ++c) {
    ClassScore& one = scores.labels[c];
    one.precision = share(right[c], named[c]);
    one.recall = share(right[c], one.count);
    one.f1 = share(2 * right[c], named[c] + one.count);
    scores.macro_f1 += one.f1 / static_cast<double>(labels);
    all_right += right[c];
    all_said += named[c] + one.count;
  }
  scores.micro_f1 = share(2 * all_right, all_said);
  return scores;
}

}  // namespace fovea::infer
