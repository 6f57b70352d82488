// What a run tells while it works. The training room prints nothing: whoever shows progress implements this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fovea::train {

// Steps of a run that only time, or somebody, ends.
inline constexpr int64_t kAnySteps = int64_t{1} << 40;

// One finished step.
struct StepReport {
  int64_t step = 0, steps = 0;  // counted from 1; steps: where the run ends, or kAnySteps
  double loss = 0;              // mean since the last line of train.jsonl: one batch says little
  double gradient_norm = 0;     // before clipping
  double learning_rate = 0;
  double items_per_second = 0;
  std::string unit = "items";  // what items are: "tokens", "pictures"
  double seconds_left = 0;     // at the pace so far
  bool logged = false;         // also written to train.jsonl
};

struct Validation {
  double value = 0;  // what best and early stopping go by
  // More to show and log, by name.
  std::vector<std::pair<std::string, double>> details = {};
};

struct ValidationReport {
  int64_t step = 0;
  Validation result;
  bool is_best = false;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // A checkpoint was found and the run continues after this step.
  virtual void on_resume(int64_t step) { (void)step; }
  virtual void on_step(const StepReport& report) { (void)report; }
  virtual void on_validation(const ValidationReport& report) { (void)report; }
  virtual void on_save(int64_t step) { (void)step; }
};

}  // namespace fovea::train
