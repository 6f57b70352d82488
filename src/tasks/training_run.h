// What trainings have in common, whatever is learnt: tokens from text, and at the end the weights to keep.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "data/tokenizer.h"
#include "nn/module.h"
#include "train/observer.h"
#include "train/trainer.h"

namespace fovea::tasks {

class RunObserver : public train::Observer {
 public:
  // What is being done before and between steps: "learning 8000 pieces from 58000 lines".
  virtual void on_note(const std::string& text) { (void)text; }
};

// tokenizer: "bpe", "unigram" or "words"; vocabulary: tokens to learn. Throws Error on another name.
std::shared_ptr<const data::Tokenizer> learn_tokenizer(const std::string& tokenizer, int64_t vocabulary,
                                                       std::span<const std::span<const std::string>> texts);

// The tokenizers of an earlier run in this directory, or those that `learn` makes, stored at once: a resumed
// run must cut text the same.
data::Tokenizers obtain_tokenizers(const std::filesystem::path& out,
                                   const std::function<data::Tokenizers()>& learn);

struct TrainingOutcome {
  train::Outcome outcome = train::Outcome::finished;
  int64_t step = 0;
  int64_t parameters = 0;
  double best = -1;      // validation's score of the weights kept; -1 without validation
  int64_t averaged = 0;  // checkpoints whose average was kept; 0: a single one's weights
};

// A training but for its data.
struct TrainingRun {
  std::filesystem::path out;
  const nn::Module& network;
  train::Rule rule;
  train::ScheduleOptions schedule;
  train::TrainOptions options;
  train::Job job;          // validation's value: the higher the better
  std::string score_name;  // of that value: "BLEU"
};

// Trains, or resumes; then leaves in the network the average of the last options.average checkpoints, or the
// best single one's weights where validation prefers them. Interrupted, it leaves the weights as they are.
TrainingOutcome run_training(const TrainingRun& run, RunObserver& observer);

// Ends a finished run: draws its curve, and writes its model card, README.md.
void finish_folder(const std::filesystem::path& out, const std::string& card);
// Of a model card: where the weights come from.
std::string weights_note(const TrainingOutcome& outcome);

}  // namespace fovea::tasks
