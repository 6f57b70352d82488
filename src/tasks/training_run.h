// What trainings have in common, whatever is learnt: the folder and its lock, the order of examples, resume,
// and at the end the weights to keep, the curve and the model card. A task supplies examples, loss and
// validation.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/batches.h"
#include "data/tokenizer.h"
#include "io/file.h"
#include "nn/module.h"
#include "train/observer.h"
#include "train/trainer.h"

namespace fovea::tasks {

class RunObserver : public train::Observer {
 public:
  // What is being done before and between steps: "learning 8000 pieces from 58000 lines".
  virtual void on_note(const std::string& text) { (void)text; }
};

// What makes a run itself. A folder that holds another run is refused, naming the one thing that differs.
struct RunIdentity {
  std::string task;
  uint64_t data = 0;               // fingerprint of the training data
  std::string examples;            // how many, for people: "5452 texts"
  Json settings;                   // all of them, by name, also those that may change
  std::vector<std::string> fixed;  // the names of those that may not
};

// A run's folder, kept from other processes while this object lives. Hold it until the last file is written.
class RunFolder {
 public:
  // Takes the lock before anything else. Where the folder holds an earlier run: throws Error when it is not
  // this one, and notes which settings have changed.
  RunFolder(const std::filesystem::path& out, const RunIdentity& identity, RunObserver& observer);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  // Removes a folder that this object made when an exception ends the run before its first step: a setting that turns out
  // to be wrong only with the tokenizer leaves nothing behind.
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  const RunIdentity& identity() const { return identity_; }
  // The tokenizers of the earlier run, or those that `learn` makes, stored at once: a resumed run must cut
  // text the same.
  data::Tokenizers tokenizers(const std::function<data::Tokenizers()>& learn) const;

 private:
  bool is_new_;
  int exceptions_;  // that were on their way when this object was made
  std::filesystem::path path_;
  DirectoryLock lock_;
  RunIdentity identity_;
};

// tokenizer: "bpe", "unigram" or "words"; vocabulary: tokens to learn, 0 for all words. Throws Error on
// another name.
std::shared_ptr<const data::Tokenizer> learn_tokenizer(const std::string& tokenizer, int64_t vocabulary,
                                                       std::span<const std::span<const std::string>> texts);

struct TrainingOutcome {
  train::Outcome outcome = train::Outcome::finished;
  int64_t step = 0;
  int64_t parameters = 0;
  // Validation's score of the weights kept, which may be negative; NaN without validation.
  double best = std::numeric_limits<double>::quiet_NaN();
  int64_t weights_step = 0;  // the step they come from
  int64_t averaged = 0;      // checkpoints whose average was kept; 0: a single one's weights
  std::string advice = {};   // what to do next where the run ended too soon; empty: nothing
};

// What a model card says besides steps, weights, score and command.
struct CardText {
  std::string title;              // "A text classifier made with Fovea"
  std::string about = {};         // what the model does, one or more lines
  std::string train, valid = {};  // the data, for people
  std::string use;                // "fovea classify model < texts.txt > labels.txt"
};

// A task's part of a training.
struct TrainingPlan {
  const nn::Module* network = nullptr;
  train::Rule rule = {};
  std::vector<train::ParameterGroup> groups = {};  // empty: one, of all parameters
  train::ScheduleOptions schedule = {};
  train::TrainOptions options = {};  // steps and minutes both absent: `passes` over the data
  double passes = 10;
  bool more_passes_overfit = false;  // a run with minutes alone ends after `passes` too, with time left

  std::vector<data::BatchOrder::Size> sizes = {};  // of every example
  int64_t batch_size = 0;                          // at most so many of these in a batch
  std::string batch_unit = {};                     // what they are: "tokens"
  std::string unit = {};                           // what a BatchLoss counts: "texts"
  // The loss of the examples of these numbers.
  std::function<train::BatchLoss(std::span<const int64_t> examples, nn::Context& context)> loss = {};
  // Its value: the higher the better. Empty: no validation.
  std::function<train::Validation()> validate = {};
  bool lower_is_better = false;  // of an error: the lower the better instead
  std::string score_name = {};   // of that value: "BLEU"
  std::string score_unit = {};   // "%"
  std::function<bool()> should_stop = {};

  // Writes all of a model folder but the weights, and all of it.
  std::function<void(const std::filesystem::path&folder)> save_config = {}, save_model = {};
  CardText card = {};
  std::string command = {};  // for the card
};

// Trains, or resumes. Unless it was interrupted, leaves a model folder with the average of the last
// options.average checkpoints, or with the best single one's weights where validation prefers them; with the
// run's curve and its model card.
TrainingOutcome run_training(const RunFolder& folder, const TrainingPlan& plan, RunObserver& observer);

// Warm-up as people give it, below 1 a share of the run and from 1 a number of steps, with a schedule's name:
// budget, inverse_sqrt or constant.
train::ScheduleOptions schedule_of(const std::string& name, double warmup);
// Throws Error on a learning rate, warm-up or label smoothing that makes no sense.
void check_rates(double learning_rate, double warmup, double smoothing, double weight_decay = 0);

// Throws Error on a size that the tokenizer cannot have; what is empty is decided later.
void check_vocabulary(const std::optional<std::string>& tokenizer, const std::optional<int64_t>& vocabulary);

// Throws Error unless there are two classes to tell apart. unit: "picture"; path: of the training data.
void require_classes(std::span<const std::string> classes, const char* unit, const std::string& path);

// A batch size with which a pass over `total` has at least about a hundred steps, between the bounds.
int64_t batch_for(int64_t total, int64_t least, int64_t most);

// Tells training data apart, so that a run is not continued on another.
class DataFingerprint {
 public:
  void add(uint64_t value) { print_.add(value); }
  void add(const std::string& text) {
    for (const char byte : text) add(uint64_t{static_cast<unsigned char>(byte)});
    add(uint64_t{text.size()});
  }
  void add(std::span<const std::string> texts) {
    for (const std::string& text : texts) add(text);
  }
  uint64_t value() const { return print_.value(); }

 private:
  data::CorpusFingerprint print_;
};

// "1 step", "20 steps".
std::string counted(int64_t count, const char* noun);

}  // namespace fovea::tasks
