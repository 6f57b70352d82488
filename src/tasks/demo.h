// The built-in example: three translators learn the same small language before one's eyes.
//
// A Transformer, a recurrent network with attention (Bahdanau et al. 2015) and one without are trained on the
// corpus of data/example_corpus.h, tried on sentences they never saw, and shown at work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "infer/bleu.h"
#include "tasks/train_translate.h"

namespace fovea::tasks {

struct DemoOptions {
  std::string out = "demo";
  int64_t steps = 800;
  uint64_t seed = 1;
  static constexpr auto fields() {
    return std::tuple{
        Field{"out", &DemoOptions::out, "directory of the run; started again on it, the run resumes"},
        Field{"steps", &DemoOptions::steps, "training steps of each model, earlier runs included"},
        Field{"seed", &DemoOptions::seed, "names all random draws"}};
  }
};

struct DemoModel {
  std::string name, title;  // "bahdanau": its folder; "recurrent, with attention"
  TrainingOutcome training;
  double bleu = 0;  // of the test sentences
  std::vector<infer::BleuOfLength> by_length;
  std::vector<std::string> translations;  // of DemoResult::sources
};

struct DemoResult {
  bool interrupted = false;
  std::vector<DemoModel> models;
  std::vector<std::string> sources, references;  // a few sentences none of the models has seen
  std::string alignment;                         // of the first of them, in shaded blocks
};

class DemoObserver : public TranslateObserver {
 public:
  // The next model's training begins: number 0 ... count - 1.
  virtual void on_model(int64_t number, int64_t count, const std::string& title) {
    (void)number, (void)count, (void)title;
  }
};

// Trains (or resumes) in options.out. Leaves there data/ (the corpus as text files), a model folder for each
// model, alignment.png, attention.html (to look around in), curves.svg, lengths.svg, and index.html, which
// shows all of it.
DemoResult run_demo(const DemoOptions& options, DemoObserver& observer,
                    const std::function<bool()>& should_stop);

}  // namespace fovea::tasks
