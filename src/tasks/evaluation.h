// How well a classifier does on labelled texts or pictures: what `fovea classify --test` prints.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infer/class_scores.h"
#include "io/json.h"
#include "tasks/prediction.h"

namespace fovea::tasks {

// What training reads: one file of labelled texts; or pictures, as a folder with a sub-folder for every class
// or as an IDX file of pictures and one of labels.
struct TestFiles {
  std::vector<std::string> paths;
  std::string label_column = {}, text_column = {};  // of texts: name or number (from 1); empty: found by name
};

struct Evaluation {
  std::string unit;  // "texts" or "pictures"
  int64_t count = 0;
  int64_t cut = 0, cut_to = 0;  // texts that were longer than the model reads, and how many tokens it reads
  std::vector<std::string> labels;
  infer::ClassScores scores;
  std::vector<std::pair<std::string, double>> details = {};  // more figures, by name
};

Evaluation evaluate(std::span<const Prediction> predictions, std::span<const int32_t> targets,
                    const std::vector<std::string>& labels, const std::string& unit);

Json to_json(const Evaluation& evaluation);
// A line for the whole, and one for each label.
std::string to_text(const Evaluation& evaluation);

}  // namespace fovea::tasks
