#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "io/file.h"
#include "kernels/optim.h"
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

void check_options(const TrainOptions& o) {
  const auto at_least = [](const char* name, auto value, auto least) {
    require(value >= least, name, " is ", value, ", wanted at least ", least);
  };
  at_least("steps", o.steps, int64_t{0});
  at_least("minutes", o.minutes, 0.0);
  at_least("accumulate", o.accumulate, int64_t{1});
  at_least("clip_norm", o.clip_norm, 0.0);
  at_least("average", o.average, int64_t{0});
  at_least("log_every", o.log_every, int64_t{0});
  at_least("validate_every", o.validate_every, int64_t{0});
  at_least("save_every", o.save_every, int64_t{0});
  at_least("patience", o.patience, int64_t{0});
}

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

// Names the first part of a run's identity that differs.
void check_identity(const Json& found, const Json& wanted, const fs::path& directory) {
  for (const auto& [name, value] : wanted.items())
    require(found.is_object() && found.contains(name) && found[name] == value, directory.string(),
            " holds another run: its ", name, " is ",
            found.is_object() && found.contains(name) ? in_quotes(found[name].dump()) : "absent", ", wanted ",
            in_quotes(value.dump()), "; choose another directory or the same settings");
}

}  // namespace

// One call of Trainer::run: the files it holds open and the clock it started.
class Trainer::Run {
 public:
  Run(Trainer& trainer, const fs::path& directory, Observer& observer)
      : t_(trainer),
        directory_(directory),
        observer_(observer),
        lock_((make_directories(directory), directory)),
        store_(directory),
        recent_(directory, trainer.options_.average) {
    if (t_.options_.ema > 0) ema_.emplace(t_.model_.state(), t_.options_.ema);
  }

  Outcome train() {
    const std::optional<fs::path> checkpoint = store_.last();
    if (checkpoint) load(*checkpoint);
    if (checkpoint && is_finished()) return Outcome::already_finished;
    recent_.forget_after(t_.state_.step);
    t_.state_.stopped_early = false;
    t_.state_.steps_wanted = t_.options_.steps;
    if (checkpoint) observer_.on_resume(t_.state_.step);
    log_.emplace(directory_, t_.state_.step);
    first_step_ = t_.state_.step;
    seconds_before_ = t_.state_.seconds;
    started_ = Clock::now();
    return loop();
  }

 private:
  bool time_is_up() const { return t_.options_.minutes > 0 && t_.state_.seconds >= t_.options_.minutes * 60; }

  // Whether the run found has nothing left to do. An early stop ends a run until more steps are asked for.
  bool is_finished() const {
    return t_.state_.step >= t_.options_.steps || time_is_up() ||
           (t_.state_.stopped_early && t_.options_.steps <= t_.state_.steps_wanted);
  }

  Outcome loop() {
    while (t_.state_.step < t_.options_.steps) {
      step();
      const bool last = t_.state_.step == t_.options_.steps;
      bool is_best = false;
      if (t_.job_.validate && (last || due(t_.state_.step, t_.options_.validate_every))) is_best = validate();
      const bool interrupted = t_.job_.should_stop && t_.job_.should_stop();
      t_.state_.stopped_early = t_.early_stopping_.should_stop();
      const bool ends = last || interrupted || t_.state_.stopped_early || time_is_up();
      // Before the checkpoint: a run that goes on from it finds the weights that belong to it.
      if (due(t_.state_.step, average_every())) keep_for_average();
      if (ends || is_best || due(t_.state_.step, t_.options_.save_every)) save(is_best);
      if (last) break;
      if (interrupted) return Outcome::interrupted;
      if (t_.state_.stopped_early) return Outcome::stopped_early;
      if (time_is_up()) return Outcome::out_of_time;
    }
    return Outcome::finished;
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
    const double rate = learning_rate_of(optimizer.rule()) * t_.schedule_.factor(step);
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
    report.steps = t_.options_.steps;
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
    Validation result;
    {
      const NoGrad no_grad;
      result = t_.job_.validate();
    }
    if (ema_) ema_->swap();
    const bool is_best = t_.early_stopping_.observe(result.value, t_.state_.step);
    t_.schedule_.observe(t_.job_.higher_is_better ? -result.value : result.value);
    Json line = {
        {"event", "validation"}, {"step", t_.state_.step}, {"value", result.value}, {"best", is_best}};
    for (const auto& [name, value] : result.details) line[name] = value;
    log_->write(line);
    observer_.on_validation({t_.state_.step, std::move(result), is_best});
    return is_best;
  }

  int64_t average_every() const {
    if (t_.options_.average < 2) return 0;
    return t_.options_.save_every > 0 ? t_.options_.save_every : t_.options_.validate_every;
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
    Json json = load_json(set / "state.json");
    require(json.is_object(), where, ": no object");
    check_identity(json["identity"], t_.job_.identity, directory_);
    const std::string rule_found = json["optimizer"].is_object() ? json["optimizer"].value("name", "") : "";
    const std::string rule_wanted = rule_to_json(t_.optimizer_.rule())["name"];
    require(rule_found == rule_wanted, directory_.string(), " was trained with the optimizer ",
            in_quotes(rule_found), ", got ", in_quotes(rule_wanted));
    RngState rng;
    EarlyStopping::State early;
    State state;
    for_each_field<State>([&](const auto& field) {
      require(json.contains(field.name), where, ": no ", field.name);
      value_from_json(json[field.name], state.*field.member, where + ": " + field.name);
    });
    fields_from_json(json["rng"], rng, where + ": rng");
    fields_from_json(json["early_stopping"], early, where + ": early_stopping");
    nn::load_weights(t_.model_, set / "model.safetensors");
    t_.optimizer_.load_state(*SafetensorsFile(set / "optimizer.safetensors"));
    if (ema_) load_ema(set);
    t_.schedule_.load_state(json["schedule"], where + ": schedule");
    t_.job_.seek(json["position"]);
    t_.context_.rng = Rng(Rng::State{rng.key, rng.drawn});
    t_.early_stopping_.state = early;
    if (state.stopped_early && t_.options_.steps > state.steps_wanted) t_.early_stopping_.state.waited = 0;
    t_.state_ = state;
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
  DirectoryLock lock_;
  CheckpointStore store_;
  RecentWeights recent_;
  std::optional<Log> log_;
  std::optional<Ema> ema_;
  int64_t first_step_ = 0;
  double seconds_before_ = 0;
  Clock::time_point started_;
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
      job_(std::move(job)),
      early_stopping_(options.patience, options.min_delta, job_.higher_is_better),
      context_{.training = true, .rng = Rng(options.seed)} {
  check_options(options_);
  FOVEA_ASSERT(job_.next_loss && job_.position && job_.seek);
}

Outcome Trainer::run(const fs::path& directory, Observer& observer) {
  return Run(*this, directory, observer).train();
}

}  // namespace fovea::train
