// How well classes were predicted: accuracy, precision, recall and F1, as scikit-learn defines them; a class that
// never occurs counts 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::infer {

struct ClassScore {
  int64_t count = 0;                         // texts of the class
  double precision = 0, recall = 0, f1 = 0;  // 0 where nothing can be said
};

struct ClassScores {
  double accuracy = 0;
  double macro_f1 = 0;  // mean over classes
  std::vector<ClassScore> classes;
  std::vector<int64_t> confusion;  // [classes, classes]: texts of the row's class predicted as the column's
};

// Both: one class in [0, classes) a text, as many of each and at least one.
ClassScores score_classes(std::span<const int32_t> predictions, std::span<const int32_t> targets,
                          int64_t classes);

// Texts with any number of labels each.
struct LabelSetScores {
  double micro_f1 = 0;  // over all decisions of all labels together
  double macro_f1 = 0;  // mean over labels
  double exact = 0;     // share of texts whose labels are all right
  std::vector<ClassScore> labels;
};
// predictions, targets: [texts, labels] of 0 and 1, as many of each and at least one text.
LabelSetScores score_label_sets(std::span<const uint8_t> predictions, std::span<const uint8_t> targets,
                                int64_t labels);

}  // namespace fovea::infer
