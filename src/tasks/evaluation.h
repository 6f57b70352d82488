// How well a classifier does on labelled texts or pictures: what `fovea classify --test` prints.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infer/class_scores.h"
#include "infer/number_scores.h"
#include "io/json.h"
#include "tasks/prediction.h"

namespace fovea::tasks {

// What training reads: one file of labelled texts; or pictures, as a folder with a sub-folder for every class
// or as an IDX file of pictures and one of labels.
struct TestFiles {
  std::vector<std::string> paths;
  // Of texts: name or number (from 1); empty: found by name.
  std::string label_column = {}, text_column = {}, pair_column = {};
};

struct Evaluation {
  std::string unit;  // "texts" or "pictures"
  int64_t count = 0;
  int64_t cut = 0, cut_to = 0;  // texts that were longer than the model reads, and how many tokens it reads
  std::vector<std::string> labels;
  data::LabelForm form = data::LabelForm::one;
  infer::ClassScores scores = {};         // one label
  infer::LabelSetScores label_sets = {};  // several
  infer::NumberScores numbers = {};       // a number
  // Of a model that sums texts up by attention: the share of a text's words that carry 90 % of its weight, the
  // largest first, as the mean over texts.
  std::optional<double> words_for_90 = {};
  std::vector<std::pair<std::string, double>> details = {};  // more figures, by name
};

Evaluation evaluate(std::span<const Prediction> predictions, const data::Targets& targets,
                    const std::vector<std::string>& labels, const std::string& unit);
Evaluation evaluate(std::span<const Prediction> predictions, std::span<const int32_t> targets,
                    const std::vector<std::string>& labels, const std::string& unit);

Json to_json(const Evaluation& evaluation);
// A line for the whole, and one for each label.
std::string to_text(const Evaluation& evaluation);

}  // namespace fovea::tasks
