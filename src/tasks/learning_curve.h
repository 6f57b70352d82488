// The picture that every training leaves behind: curve.svg, drawn from train.jsonl.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "explain/chart.h"

namespace fovea::tasks {

struct LearningCurve {
  std::vector<ChartPoint> training_loss, validation_loss;
  std::string score_name;  // "BLEU", "accuracy, %"; empty without a score
  std::vector<ChartPoint> score;
};

// The curve of a log: the loss of its steps; of its validations valid_loss, and as the score the value that
// the run went by. Lines that are not understood are left out.
LearningCurve read_curve(std::string_view log);

// Whether the score was rising fast when the run ended: the last is the best so far, and the last third of
// the run brought more than a tenth of it. Of an error, whether it was falling as fast.
bool still_improving(const LearningCurve& curve, bool lower_is_better = false);

// Writes DIR/curve.svg from DIR/train.jsonl.
void write_curve(const std::filesystem::path& run);

}  // namespace fovea::tasks
