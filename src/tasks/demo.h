// The built-in example: trains three translators on the same small corpus and compares them.
//
// A Transformer, a recurrent network with attention (Bahdanau et al. 2015) and one without are trained on the
// corpus of data/example_corpus.h and tested on sentences that are not in the training data.
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
        Field{"out", &DemoOptions::out, "output directory; the same command with the same directory resumes"},
        Field{"steps", &DemoOptions::steps, "training steps of each model, including those of earlier runs"},
        Field{"seed", &DemoOptions::seed, "random seed; the same seed gives the same result"}};
  }
};

// Throws Error for options that make no sense, before anything is written.
void check_demo(const DemoOptions& options);

struct DemoModel {
  std::string name, title, subject;  // "bahdanau" (its folder), "recurrent, with attention",
                                     // "recurrent network with attention"
  TrainingOutcome training;
  double bleu = 0;  // of the test sentences
  std::vector<infer::BleuOfLength> by_length;
  std::vector<std::string> translations;  // of DemoResult::sources
};

struct DemoResult {
  bool interrupted = false;
  std::vector<DemoModel> models;
  std::vector<std::string> sources, references;  // some test sentences, one of each length
  std::string alignment;                         // of one of them, in shaded blocks
};

class DemoObserver : public TranslateObserver {
 public:
  // Called before the training of each model: number 0 ... count - 1.
  virtual void on_model(int64_t number, int64_t count, const std::string& title) {
    (void)number, (void)count, (void)title;
  }
};

// Trains (or resumes) in options.out. Writes there data/ (the corpus as text files), a model folder for each
// model, alignment.png, attention.html (all attention maps), curves.svg, lengths.svg, and index.html, which
// shows all results.
// `width` is the width of the terminal that DemoResult::alignment is made for.
DemoResult run_demo(const DemoOptions& options, DemoObserver& observer,
                    const std::function<bool()>& should_stop, size_t width = 100);

}  // namespace fovea::tasks
