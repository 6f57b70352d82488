// The built-in example: a tiny network learns where to look.
//
// A row of letters, four of which wear a mark: ▲ ● ■ ◆. Asked for a mark, the network is to say the letter
// that wears it. Nothing tells it where the mark is: it has to find out that looking helps, and where. The
// rows are made up as the run goes; no two are likely to be the same.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "train/trainer.h"

namespace fovea::tasks {

struct DemoOptions {
  std::string out = "demo";
  int64_t steps = 400;
  uint64_t seed = 1;
  static constexpr auto fields() {
    return std::tuple{
        Field{"out", &DemoOptions::out, "directory of the run; started again on it, the run resumes"},
        Field{"steps", &DemoOptions::steps, "training steps, earlier runs in the directory included"},
        Field{"seed", &DemoOptions::seed, "names all random draws"}};
  }
};

// A fresh row with its four questions, as text: the row, then for each mark the answer and, shaded, where the
// network looked for it.
struct DemoExample {
  std::string text;
  int right = 0;  // of four answers
};

struct DemoResult {
  train::Outcome outcome = train::Outcome::finished;
  int64_t step = 0;
  int64_t parameters = 0;
  double accuracy = 0;  // on `asked` questions about rows never seen
  int64_t asked = 0;
  std::vector<DemoExample> examples;
};

// Trains (or resumes) in options.out, then asks about fresh rows. Leaves there, besides the run's own files,
// a model folder (config.json, model.safetensors) and attention.svg, a picture of where the network looks.
DemoResult run_demo(const DemoOptions& options, train::Observer& observer,
                    const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
