// The training loop: gradient accumulation, schedules, logging, validation, early stopping, checkpoints and resume.
#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "io/file.h"
#include "kernels/vector/optim.h"
#include "nn/weights.h"
#include "train/averaging.h"
#include "train/checkpoint.h"
#include "train/log.h"

namespace fovea::train {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool due(int64_t step, int64_t every) {
  return every > 0 && step % every == 0;
}

struct RngState {
  uint64_t key = 0, drawn = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"key", &RngState::key, "names the stream"},
                      Field{"drawn", &RngState::drawn, "draws taken"}};
  }
};

// The first parameter or buffer that holds a NaN or Inf; empty when none does.
std::string first_bad_weight(const std::vector<nn::NamedParameter>& parameters) {
  std::vector<kernels::ConstTensor> tensors;
  for (const nn::NamedParameter& parameter : parameters)
    tensors.push_back({parameter.value.value().data(), parameter.value.count()});
  std::vector<double> sums(tensors.size());
  sums_of_squares(tensors, sums.data());
  for (size_t i = 0; i < sums.size(); ++i)
    if (!std::isfinite(sums[i])) return parameters[i].name;
  return "";
}

// The first place in which two values differ, as "settings.width"; `path` is where they stand.
struct Difference {
  std::string path;
  const Json *found, *got;  // null: absent
};
std::optional<Difference> first_difference(const Json* found, const Json* got, const std::string& path) {
  if (found != nullptr && got != nullptr && found->is_object() && got->is_object()) {
    for (const auto& [name, value] : got->items())
      if (const auto inside = first_difference(found->contains(name) ? &(*found)[name] : nullptr, &value,
                                               path.empty() ? name : path + "." + name))
        return inside;
    return std::nullopt;
  }
  if (found != nullptr && got != nullptr && *found == *got) return std::nullopt;
  return Difference{path, found, got};
}

// Names the one part of a run's identity that differs.
void check_identity(const Json& found, const Json& wanted, const fs::path& directory) {
  const auto difference = first_difference(&found, &wanted, "");
  if (!difference) return;
  const auto text = [](const Json* value) { return value == nullptr ? "none" : in_quotes(value->dump()); };
  fail(directory.string(), " contains a run with ", difference->path, " ", text(difference->found), "; got ",
       text(difference->got), "; choose another folder or the same setting");
}

// Refuses what no run writes: a damaged step would train for ever.
void check_state(const Trainer::State& state, const EarlyStopping::State& early, const std::string& where) {
  constexpr double kLongest = 1e12;  // seconds
  const auto check = [&](const char* name, auto value, auto low, auto high) {
    require(value >= low && value <= high, where, ": damaged; ", name, " is ", value, ", wanted ", low,
            " to ", high, "; remove the folder checkpoints to start again");
  };
  check("step", state.step, int64_t{0}, kAnySteps);
  check("seconds", state.seconds, 0.0, kLongest);
  check("steps_wanted", state.steps_wanted, int64_t{0}, kAnySteps);
  check("minutes_wanted", state.minutes_wanted, 0.0, kLongest);
  check("window_steps", state.window_steps, int64_t{0}, state.step);
  check("best_step", early.best_step, int64_t{0}, state.step);
  check("waited", early.waited, int64_t{0}, state.step);
}

// What json[name] holds. Throws Error, beginning with `where`, when there is none.
const Json& member(const Json& json, const char* name, const std::string& where) {
  require(json.is_object() && json.contains(name), where, ": damaged; there is no ", name,
          "; remove the folder checkpoints to start again");
  return json[name];
}

}  // namespace

void check_options(const TrainOptions& o) {
  const auto between = [](const char* name, auto value, auto low, auto high) {
    require(value >= low && value <= high, name, ": got ", value, ", wanted ", low, " to ", high);
  };
  constexpr int64_t kMany = 1'000'000'000;
  require(!o.steps || *o.steps >= 1, "steps: got ", o.steps.value_or(0), ", wanted at least 1");
  require(!o.steps || *o.steps <= kAnySteps, "steps: got ", o.steps.value_or(0), ", wanted at most ",
          kAnySteps);
  between("minutes", o.minutes, 0.0, 1e7);
  between("accumulate", o.accumulate, int64_t{1}, kMany);
  between("clip_norm", o.clip_norm, 0.0, 1e30);
  require(o.ema >= 0 && o.ema < 1, "ema: got ", o.ema, ", wanted at least 0 and below 1");
  between("average", o.average, int64_t{0}, int64_t{1000});
  between("log_every", o.log_every, int64_t{0}, kMany);
  between("validations", o.validations, int64_t{1}, int64_t{1'000'000});
  between("validate_every", o.validate_every, int64_t{0}, kMany);
  between("save_every", o.save_every, int64_t{0}, kMany);
  between("patience", o.patience, int64_t{0}, kMany);
  between("min_delta", o.min_delta, 0.0, 1e30);
}

// One call of Trainer::run: the files it holds open and the clock it started.
class Trainer::Run {
 public:
  Run(Trainer& trainer, const fs::path& directory, Observer& observer)
      : t_(trainer),
        directory_(directory),
        observer_(observer),
        store_(directory_),
        recent_(directory_, trainer.options_.average) {
    if (t_.options_.ema > 0) ema_.emplace(t_.model_.state(), t_.options_.ema);
  }

  Outcome train() {
    const std::optional<fs::path> checkpoint = store_.last();
    if (checkpoint) load(*checkpoint);
    if (checkpoint && is_finished()) return Outcome::already_finished;
    recent_.forget_after(t_.state_.step);
    t_.state_.stopped_early = false;
    t_.state_.steps_wanted = t_.steps_;
    t_.state_.minutes_wanted = t_.options_.minutes;
    if (checkpoint) observer_.on_resume(t_.state_.step);
    log_.emplace(directory_, t_.state_.step);
    first_step_ = t_.state_.step;
    seconds_before_ = t_.state_.seconds;
    started_ = saved_ = Clock::now();
    marks_ = marks_passed();
    return loop();
  }

 private:
  bool time_is_up() const { return t_.options_.minutes > 0 && t_.state_.seconds >= t_.options_.minutes * 60; }

  // How much of the run is over after `step` steps and so many seconds, 0 to 1: the larger share of its
  // steps and its minutes. Without minutes it depends on the step alone, so that a resumed run repeats it.
  double share(double step, double seconds) const {
    double share = t_.steps_ < kAnySteps ? step / static_cast<double>(t_.steps_) : 0;
    if (t_.options_.minutes > 0) share = std::max(share, seconds / (60 * t_.options_.minutes));
    return std::min(share, 1.0);
  }
  // In the middle of the step about to be made: the first is not at 0 and the last not at 1.
  double share_of_next_step() const {
    const double done = static_cast<double>(t_.state_.step - first_step_);
    const double each = done > 0 ? seconds_since(started_) / done : 0;
    return share(static_cast<double>(t_.state_.step) + 0.5, t_.state_.seconds + each / 2);
  }
  // A run is cut into options.validations parts; how many of them are over.
  int64_t marks_passed() const {
    const int64_t parts = t_.options_.validations;
    // Whole numbers where steps decide, so that rounding cannot.
    const int64_t by_steps = t_.steps_ < kAnySteps ? t_.state_.step * parts / t_.steps_ : 0;
    const auto by_time = static_cast<int64_t>(share(0, t_.state_.seconds) * static_cast<double>(parts));
    return std::max(by_steps, by_time);
  }

  // Whether the run found has nothing left to do. An early stop ends a run until more is requested.
  bool is_finished() const {
    const bool more_steps =
        t_.steps_ > t_.state_.steps_wanted || (t_.state_.steps_wanted == kAnySteps && t_.steps_ < kAnySteps);
    const bool more_minutes = t_.state_.minutes_wanted > 0 && t_.options_.minutes > t_.state_.minutes_wanted;
    const bool more_requested = more_steps || more_minutes;
    return t_.state_.step >= t_.steps_ || time_is_up() || (t_.state_.stopped_early && !more_requested);
  }

  Outcome loop() {
    while (t_.state_.step < t_.steps_) {
      step();
      bool last = t_.state_.step == t_.steps_ || time_is_up();
      const bool at_mark = marks_passed() > marks_;
      bool is_best = false;
      // The last weights compete with the others, wherever the run ends.
      if (t_.job_.validate && (last || validation_due(at_mark))) {
        is_best = validate();
        t_.state_.seconds = seconds_before_ + seconds_since(started_);
        last = last || time_is_up();
      }
      if (at_mark) marks_ = marks_passed();
      const bool interrupted = t_.job_.should_stop && t_.job_.should_stop();
      t_.state_.stopped_early = t_.early_stopping_.should_stop();
      // Before the checkpoint: a run that continues from it finds the weights that belong to it.
      if (average_due(at_mark)) keep_for_average();
      if (last || interrupted || t_.state_.stopped_early || is_best || save_due(at_mark)) save(is_best);
      if (t_.state_.step == t_.steps_) break;
      if (last) return Outcome::out_of_time;
      if (interrupted) return Outcome::interrupted;
      if (t_.state_.stopped_early) return Outcome::stopped_early;
    }
    return Outcome::finished;
  }

  bool validation_due(bool at_mark) const {
    if (t_.options_.validate_every > 0) return due(t_.state_.step, t_.options_.validate_every);
    // A run with a time limit spends at most a third of it on validation, but for the last one.
    const bool too_long = t_.options_.minutes > 0 && validation_seconds_ > 0.33 * seconds_since(started_);
    return at_mark && !too_long;
  }
  bool save_due(bool at_mark) const {
    constexpr double kLongestUnsaved = 600;  // seconds
    if (t_.options_.save_every > 0) return due(t_.state_.step, t_.options_.save_every);
    return at_mark || seconds_since(saved_) > kLongestUnsaved;
  }
  bool average_due(bool at_mark) const {
    const TrainOptions& o = t_.options_;
    if (o.average < 2) return false;
    if (o.save_every > 0) return due(t_.state_.step, o.save_every);
    return o.validate_every > 0 ? due(t_.state_.step, o.validate_every) : at_mark;
  }

  void step() {
    Optimizer& optimizer = t_.optimizer_;
    const int64_t step = t_.state_.step + 1;
    const auto step_started = Clock::now();
    optimizer.clear_grad();
    double loss = 0, items = 0;
    for (int64_t i = 0; i < t_.options_.accumulate; ++i) {
      const BatchLoss batch = t_.job_.next_loss(t_.context_);
      const double value = batch.loss.value().item();
      if (!std::isfinite(value)) fail_not_finite(step, "the loss is " + std::to_string(value));
      batch.loss.backward();
      loss += value;
      items += batch.items;
    }
    const double share = 1.0 / static_cast<double>(t_.options_.accumulate);
    const GradientNorm gradient = gradient_norm(optimizer.parameters());
    if (!gradient.bad.empty())
      fail_not_finite(step, "the gradient of " + in_quotes(gradient.bad) + " is not finite");
    const double norm = gradient.norm * share;
    const double clip = t_.options_.clip_norm > 0 ? clip_factor(norm, t_.options_.clip_norm) : 1;
    const double rate = learning_rate_of(optimizer.rule()) * t_.schedule_.factor(step, share_of_next_step());
    optimizer.step(rate, static_cast<float>(clip * share));
    optimizer.clear_grad();
    if (ema_) ema_->update();
    t_.state_.step = step;
    t_.state_.seconds = seconds_before_ + seconds_since(started_);
    report(step_started, {.loss = loss * share, .gradient_norm = norm, .learning_rate = rate}, items);
  }

  void report(Clock::time_point step_started, StepReport report, double items) {
    window_items_ += items;
    window_seconds_ += seconds_since(step_started);
    t_.state_.window_loss += report.loss;
    report.loss = t_.state_.window_loss / static_cast<double>(++t_.state_.window_steps);
    report.step = t_.state_.step;
    report.steps = t_.steps_;
    report.unit = t_.job_.unit;
    report.items_per_second = window_items_ / std::max(window_seconds_, 1e-9);
    const double done = static_cast<double>(report.step - first_step_);
    report.seconds_left = seconds_since(started_) / done * static_cast<double>(report.steps - report.step);
    if (t_.options_.minutes > 0)
      report.seconds_left =
          std::min(report.seconds_left, std::max(0.0, t_.options_.minutes * 60 - t_.state_.seconds));
    report.logged = due(report.step, t_.options_.log_every) || report.step == report.steps;
    if (report.logged) {
      log_->write({{"event", "step"},
                   {"step", report.step},
                   {"loss", report.loss},
                   {"gradient_norm", report.gradient_norm},
                   {"learning_rate", report.learning_rate},
                   {"items_per_second", report.items_per_second},
                   {"seconds", t_.state_.seconds}});
      window_items_ = window_seconds_ = t_.state_.window_loss = 0;
      t_.state_.window_steps = 0;
    }
    observer_.on_step(report);
  }

  // True when the result is the best so far.
  bool validate() {
    if (ema_) ema_->swap();
    const auto validation_started = Clock::now();
    Validation result;
    {
      const NoGrad no_grad;
      result = t_.job_.validate();
    }
    if (ema_) ema_->swap();
    validation_seconds_ += seconds_since(validation_started);
    const bool is_best = t_.early_stopping_.observe(result.value, t_.state_.step);
    t_.schedule_.observe(t_.job_.higher_is_better ? -result.value : result.value);
    Json line = {
        {"event", "validation"}, {"step", t_.state_.step}, {"value", result.value}, {"best", is_best}};
    for (const auto& [name, value] : result.details) line[name] = value;
    log_->write(line);
    observer_.on_validation({t_.state_.step, std::move(result), is_best});
    return is_best;
  }

  void check_weights() const {
    const std::string bad = first_bad_weight(t_.model_.state());
    if (!bad.empty()) fail_not_finite(t_.state_.step, "the weight " + in_quotes(bad) + " is not finite");
  }

  void keep_for_average() {
    check_weights();
    recent_.add(t_.state_.step, ema_ ? ema_->state() : nn::weights_of(t_.model_), nn::weights_metadata());
  }

  void save(bool is_best) {
    check_weights();
    t_.state_.seconds = seconds_before_ + seconds_since(started_);
    store_.save(t_.state_.step, is_best, [&](DirectorySet& set) {
      const auto write = [&](const char* name, std::vector<TensorToWrite> tensors) {
        set.write(name, [&](FileWriter& file) {
          write_safetensors(file, std::move(tensors), nn::weights_metadata());
        });
      };
      write("model.safetensors", nn::weights_of(t_.model_));
      write("optimizer.safetensors", t_.optimizer_.state());
      if (ema_) write("ema.safetensors", ema_->state());
      set.write("state.json", [&](FileWriter& file) { file.write(state_json().dump(2) + "\n"); });
      if (t_.job_.save_more) t_.job_.save_more(set.path());
    });
    saved_ = Clock::now();
    observer_.on_save(t_.state_.step);
  }

  Json state_json() const {
    const Rng::State& rng = t_.context_.rng.state();
    Json json = fields_to_json(t_.state_);
    json["rng"] = fields_to_json(RngState{rng.key, rng.drawn});
    json["position"] = t_.job_.position();
    json["schedule"] = t_.schedule_.state();
    json["early_stopping"] = fields_to_json(t_.early_stopping_.state);
    json["optimizer"] = rule_to_json(t_.optimizer_.rule());
    json["options"] = fields_to_json(t_.options_);
    json["identity"] = t_.job_.identity;
    return json;
  }

  void load(const fs::path& set) {
    const std::string where = (set / "state.json").string();
    const Json json = [&] {
      try {
        return load_json(set / "state.json");
      } catch (const Error& error) {
        fail(error.what(), "; remove the folder checkpoints to start again");
      }
    }();
    check_identity(member(json, "identity", where), t_.job_.identity, directory_);
    std::string rule_found;
    value_from_json(member(member(json, "optimizer", where), "name", where + ": optimizer"), rule_found,
                    where + ": optimizer: name");
    const std::string rule_wanted = rule_to_json(t_.optimizer_.rule())["name"];
    require(rule_found == rule_wanted, directory_.string(), " was trained with the optimizer ",
            in_quotes(rule_found), ", got ", in_quotes(rule_wanted));
    RngState rng;
    EarlyStopping::State early;
    State state;
    for_each_field<State>([&](const auto& field) {
      value_from_json(member(json, field.name, where), state.*field.member, where + ": " + field.name);
    });
    fields_from_json(member(json, "rng", where), rng, where + ": rng");
    fields_from_json(member(json, "early_stopping", where), early, where + ": early_stopping");
    check_state(state, early, where);
    nn::load_weights(t_.model_, set / "model.safetensors");
    t_.optimizer_.load_state(*SafetensorsFile(set / "optimizer.safetensors"));
    if (ema_) load_ema(set);
    t_.schedule_.load_state(member(json, "schedule", where), where + ": schedule");
    const Json& position = member(json, "position", where);
    try {
      t_.job_.seek(position);
    } catch (const Error& error) {
      fail(where, ": damaged; ", error.what(), "; remove the folder checkpoints to start again");
    }
    t_.context_.rng = Rng(Rng::State{rng.key, rng.drawn});
    t_.early_stopping_.state = early;
    t_.state_ = state;
    if (state.stopped_early && !is_finished()) t_.early_stopping_.state.waited = 0;
  }

  // A run that had no average so far begins one from its weights.
  void load_ema(const fs::path& set) {
    if (fs::exists(set / "ema.safetensors"))
      ema_->load_state(*SafetensorsFile(set / "ema.safetensors"));
    else
      ema_.emplace(t_.model_.state(), t_.options_.ema);
  }

  [[noreturn]] void fail_not_finite(int64_t step, const std::string& what) const {
    const auto kept = store_.last();
    fail("step ", step, ": ", what, "; training stopped, ",
         kept ? "the last good checkpoint is " + kept->string() : "there is no checkpoint yet",
         "; try a lower learning rate or clipping by norm");
  }

  Trainer& t_;
  fs::path directory_;
  Observer& observer_;
  CheckpointStore store_;
  RecentWeights recent_;
  std::optional<Log> log_;
  std::optional<Ema> ema_;
  int64_t first_step_ = 0;
  double seconds_before_ = 0;
  Clock::time_point started_, saved_;
  int64_t marks_ = 0;  // parts of the run that are over
  double validation_seconds_ = 0;
  double window_items_ = 0, window_seconds_ = 0;  // since the last line of the log
};

Trainer::Trainer(const nn::Module& model, Rule rule, ScheduleOptions schedule, TrainOptions options, Job job)
    : Trainer(model, {{.parameters = model.parameters()}}, rule, std::move(schedule), options,
              std::move(job)) {}

Trainer::Trainer(const nn::Module& model, std::vector<ParameterGroup> groups, Rule rule,
                 ScheduleOptions schedule, TrainOptions options, Job job)
    : model_(model),
      optimizer_(std::move(groups), rule),
      schedule_(std::move(schedule)),
      options_(options),
      steps_(options.steps.value_or(kAnySteps)),
      job_(std::move(job)),
      early_stopping_(options.patience, options.min_delta, job_.higher_is_better),
      context_{.training = true, .rng = Rng(options.seed)} {
  check_options(options_);
  require(job_.next_loss && job_.position && job_.seek,
          "training: got a job that lacks a callback, wanted next_loss, position and seek");
}

Outcome Trainer::run(const fs::path& directory, Observer& observer) {
  make_directories(directory);
  const DirectoryLock lock(directory);
  return run_locked(directory, observer);
}

Outcome Trainer::run_locked(const fs::path& directory, Observer& observer) {
  return Run(*this, directory, observer).train();
}

}  // namespace fovea::train
