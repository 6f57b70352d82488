// The training loop: steps, validation, checkpoints, resume. Callbacks supply the batches, the loss and the validation.
//
// A run lives in a directory: checkpoints/ (see checkpoint.h), train.jsonl (see log.h). Started again on the
// same directory it continues from the last checkpoint with the same bits as if it had never stopped:
// weights, optimiser, schedule, random numbers, position in the data and early stopping all come back, and so
// do the weights kept for an average.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "base/fields.h"
#include "io/json.h"
#include "nn/module.h"
#include "train/early_stopping.h"
#include "train/observer.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace fovea::train {

struct TrainOptions {
  std::optional<int64_t> steps = {};  // empty: as many as fit in `minutes`
  double minutes = 0;
  int64_t accumulate = 1;
  double clip_norm = 0;
  double ema = 0;
  int64_t average = 0;
  int64_t log_every = 10;
  int64_t validations = 1;
  int64_t validate_every = 0;
  int64_t save_every = 0;
  int64_t patience = 0;
  double min_delta = 0;
  uint64_t seed = 1;

  static constexpr auto fields() {
    using T = TrainOptions;
    return std::tuple{
        Field{"steps", &T::steps,
              "updates of the weights, including those of earlier runs in the same folder"},
        Field{"minutes", &T::minutes,
              "minutes of training, including those of earlier runs in the same folder; 0: no limit"},
        Field{"accumulate", &T::accumulate, "batches whose gradients are averaged for one update"},
        Field{"clip_norm", &T::clip_norm, "gradients with a larger norm are scaled down to it; 0: never"},
        Field{"ema", &T::ema,
              "decay of a moving average of the weights, which is then validated and kept; 0: none"},
        Field{"average", &T::average,
              "checkpoints averaged at the end; the average is kept where validation prefers it; 0: none"},
        Field{"log_every", &T::log_every, "steps between lines of train.jsonl"},
        Field{"validations", &T::validations,
              "validations in a run, evenly spaced, the last one at its end; each saves a checkpoint"},
        Field{"validate_every", &T::validate_every, "steps between validations; 0: as --validations says"},
        Field{"save_every", &T::save_every,
              "steps between checkpoints; 0: at each validation and at least every 10 minutes"},
        Field{"patience", &T::patience,
              "stop early after this many validations in a row without progress; 0: never"},
        Field{"min_delta", &T::min_delta, "smallest change of the score that counts as progress"},
        Field{"seed", &T::seed, "random seed; the same seed gives the same result"}};
  }
};

// Throws Error naming the first option that makes no sense.
void check_options(const TrainOptions& options);

// The loss of one batch, and how many items (tokens, pictures) it held, for the throughput.
struct BatchLoss {
  Var loss;  // one element
  double items = 0;
};

// What to learn.
struct Job {
  // Makes the next batch and its loss. Required.
  std::function<BatchLoss(nn::Context& context)> next_loss;
  // The place in the data, to be kept in a checkpoint, and the way back to it. Required.
  std::function<Json()> position;
  std::function<void(const Json& position)> seek;
  // How good the model is now; runs without recording, with the averaged weights where there are any.
  // Optional.
  std::function<Validation()> validate = {};
  bool higher_is_better = false;
  // What BatchLoss::items counts, for the progress line: "tokens", "pictures".
  std::string unit = "items";
  // Adds files to a checkpoint (a config, a tokenizer). Optional.
  std::function<void(const std::filesystem::path& directory)> save_more = {};
  // Asked after every step; true saves and stops. Optional.
  std::function<bool()> should_stop = {};
  // What makes this run itself (task, seed, sizes): a checkpoint that says otherwise is refused.
  Json identity = Json::object();
};

enum class Outcome { finished, already_finished, stopped_early, out_of_time, interrupted };

class Trainer {
 public:
  // `model` must outlive the trainer, and so must what the job's callbacks refer to. Throws Error on settings
  // that make no sense. The optimiser's groups default to one with all the model's parameters.
  Trainer(const nn::Module& model, Rule rule, ScheduleOptions schedule, TrainOptions options, Job job);
  Trainer(const nn::Module& model, std::vector<ParameterGroup> groups, Rule rule, ScheduleOptions schedule,
          TrainOptions options, Job job);

  // Trains in `directory` until the steps are done, time is up, validation stops getting better or the job
  // asks to stop; validates the last weights unless it was the job that asked; saves; leaves the last weights
  // in the model. Throws Error, keeping the last good
  // checkpoint, when the loss, a gradient or a weight is NaN or Inf (naming the step and the tensor), when
  // the disk is full, when the checkpoint found does not fit, and when another process trains in the same
  // directory.
  Outcome run(const std::filesystem::path& directory, Observer& observer);
  // The same in a directory whose lock the caller holds: for those who write there before or after.
  Outcome run_locked(const std::filesystem::path& directory, Observer& observer);

  int64_t step() const { return state_.step; }
  double seconds() const { return state_.seconds; }
  // The best validation so far.
  const EarlyStopping::State& best() const { return early_stopping_.state; }

  // What a checkpoint's state.json keeps besides the parts' own.
  struct State {
    int64_t step = 0;
    double seconds = 0;
    int64_t steps_wanted = 0;
    double minutes_wanted = 0;
    bool stopped_early = false;
    double window_loss = 0;
    int64_t window_steps = 0;
    static constexpr auto fields() {
      return std::tuple{
          Field{"step", &State::step, "updates done"},
          Field{"seconds", &State::seconds, "time spent on them"},
          Field{"steps_wanted", &State::steps_wanted, "where the run was to end"},
          Field{"minutes_wanted", &State::minutes_wanted, "how long it was to take; 0: any time"},
          Field{"stopped_early", &State::stopped_early, "validation stopped getting better"},
          Field{"window_loss", &State::window_loss, "sum of losses not yet in the log"},
          Field{"window_steps", &State::window_steps, "their number"}};
    }
  };

 private:
  class Run;

  const nn::Module& model_;
  Optimizer optimizer_;
  Schedule schedule_;
  TrainOptions options_;
  int64_t steps_;  // options_.steps, or kAnySteps
  Job job_;
  EarlyStopping early_stopping_;
  nn::Context context_;
  State state_;
};

}  // namespace fovea::train
