// Runs a training in its folder: identity and lock, resume, choice of the final weights, learning curve and model card.
#include "tasks/training_run.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <sstream>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "nn/weights.h"
#include "tasks/learning_curve.h"
#include "train/averaging.h"
#include "train/checkpoint.h"

namespace fovea::tasks {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRunFile = "run.json";
constexpr const char* kTokenizerFolder = "tokenizer";

Json identity_json(const RunIdentity& identity) {
  return {{"task", identity.task},
          {"data", identity.data},
          {"examples", identity.examples},
          {"settings", identity.settings}};
}

std::string shown(const Json& value) {
  if (value.is_null()) return "none";
  return value.is_string() ? in_quotes(value.get<std::string>()) : in_quotes(value.dump());
}

// Compares a run found with the one that is wanted; notes what changes where it may.
void compare_runs(const Json& found, const RunIdentity& wanted, const fs::path& folder,
                  RunObserver& observer) {
  const std::string where = (folder / kRunFile).string();
  std::string task, examples;
  uint64_t data = 0;
  const auto take = [&](const char* name, auto& value) {
    require(found.is_object() && found.contains(name), where, ": damaged; there is no ", name,
            "; choose another folder");
    value_from_json(found[name], value, where + ": " + name);
  };
  take("task", task);
  take("data", data);
  take("examples", examples);
  require(found.contains("settings") && found["settings"].is_object(), where,
          ": damaged; there are no settings; choose another folder");
  require(task == wanted.task, folder.string(), " contains a run of the task ", in_quotes(task), "; got ",
          in_quotes(wanted.task), "; choose another folder");
  const Json& settings = found["settings"];
  const auto differs = [&](const std::string& name) {
    return !settings.contains(name) || settings[name] != wanted.settings[name];
  };
  const auto earlier = [&](const std::string& name) {
    return settings.contains(name) ? shown(settings[name]) : std::string("none");
  };
  // The model first: other settings exist because of it. The seed, which data may be drawn from. Then the data: some
  // settings follow from it.
  for (const std::string name : {"model", "seed"})
    if (wanted.settings.contains(name))
      require(!differs(name), folder.string(), " contains a run with ", name, " ", earlier(name), "; got ",
              shown(wanted.settings[name]), "; choose another folder, or continue with the same ", name);
  require(data == wanted.data, folder.string(), " contains a run on other training data (",
          in_quotes(examples), "); got ", examples == wanted.examples ? "as many others" : wanted.examples,
          "; continue with the same files, or choose another folder");
  for (const auto& item : wanted.settings.items()) {
    const std::string& name = item.key();
    if (!differs(name)) continue;
    const bool fixed = std::find(wanted.fixed.begin(), wanted.fixed.end(), name) != wanted.fixed.end();
    require(!fixed, folder.string(), " contains a run with ", name, " ", earlier(name), "; got ",
            shown(item.value()), "; choose another folder, or continue with the same ", name);
    observer.on_note(
        message(name, " was ", earlier(name), " so far; the run continues with ", shown(item.value())));
  }
}

// The best weights, or the last ones of a run that went on without validation; as validation saw them: the
// moving average of a run that keeps one.
void load_weights(const fs::path& out, const TrainingPlan& plan, bool best) {
  const train::CheckpointStore store(out);
  const auto set = best && store.best() ? store.best() : store.last();
  if (!set) return;
  const bool averaged = fs::exists(*set / "ema.safetensors");
  nn::load_weights(*plan.network, *set / (averaged ? "ema.safetensors" : "model.safetensors"));
}

double score_now(const TrainingPlan& plan) {
  const NoGrad no_grad;
  return plan.validate().value;
}

void choose_weights(const fs::path& out, const TrainingPlan& plan, RunObserver& observer,
                    TrainingOutcome& outcome) {
  const std::vector<fs::path> files = train::RecentWeights(out, plan.options.average).files();
  const bool best = plan.validate || outcome.outcome == train::Outcome::already_finished;
  load_weights(out, plan, best);
  // A run that was trained without validation, and now has it.
  if (plan.validate && std::isnan(outcome.best)) outcome.best = score_now(plan);
  if (files.size() < 2) return;
  const fs::path mean = out / "checkpoints" / "average.safetensors";
  train::average_checkpoints(files, mean);
  nn::load_weights(*plan.network, mean);
  const auto count = static_cast<int64_t>(files.size());
  if (!plan.validate) {
    outcome.averaged = count;
    return observer.on_note(message("the model is the average of the last ", count, " checkpoints"));
  }
  const double value = score_now(plan);
  const bool better = plan.lower_is_better ? value <= outcome.best : value >= outcome.best;
  observer.on_note(message("average of the last ", count, " checkpoints: ", plan.score_name, " ", value,
                           "; best single checkpoint: ", outcome.best, "; the model is the ",
                           better ? "average" : "best single one"));
  if (!better) return load_weights(out, plan, best);
  outcome.best = value;
  outcome.averaged = count;
}

std::string model_card(const TrainingPlan& plan, const TrainingOutcome& outcome) {
  const CardText& text = plan.card;
  std::ostringstream card;
  card << "# " << text.title << "\n\n"
       << text.about << "Trained on " << text.train << ": " << counted(outcome.step, "step") << ", "
       << outcome.parameters << " parameters.\n";
  if (outcome.averaged > 0)
    card << "The weights are the average of the last " << outcome.averaged << " checkpoints.\n";
  else
    card << "The weights are those of step " << outcome.weights_step << ".\n";
  if (!std::isnan(outcome.best))
    card << "With these weights, " << plan.score_name << " on " << text.valid << ": " << outcome.best
         << (plan.score_unit.empty() ? "" : " ") << plan.score_unit << ".\n";
  card << "\n    " << plan.command << "\n\nUse it:\n\n    " << text.use << '\n';
  return card.str();
}

// A network that gives every input the same answer.
bool never_changed(const LearningCurve& curve) {
  return curve.score.size() >= 4 &&
         std::all_of(curve.score.begin(), curve.score.end(),
                     [&](const ChartPoint& point) { return point.y == curve.score[0].y; });
}

// Whether the run ended while it was still learning fast, and what to do about it.
std::string advice_for(const fs::path& out, const TrainingPlan& plan, const TrainingOutcome& outcome,
                       double seconds, double passes) {
  if (outcome.outcome == train::Outcome::stopped_early) return "";
  const LearningCurve curve = read_curve(read_text(out / "train.jsonl"));
  std::string why;
  if (plan.schedule.warmup >= outcome.step)
    why = message("still in its warm-up of ", plan.schedule.warmup, " steps");
  else if (still_improving(curve, plan.lower_is_better))
    why = "while validation was still improving fast";
  else if (plan.validate && !plan.lower_is_better && outcome.best < 1)  // of 100
    why = message("with a ", plan.score_name, outcome.best < 0 ? " below 0" : " near 0");
  else if (never_changed(curve) && !(outcome.best >= 100))
    why = message("and its ", plan.score_name,
                  " was the same at every validation: the model has not begun to learn");
  else if (passes < 1 && outcome.outcome == train::Outcome::out_of_time)
    why = message("before it had seen all of the data once");
  if (why.empty()) return "";
  // More of what ended the run.
  const std::string more = outcome.outcome == train::Outcome::out_of_time
                               ? message("--minutes ", std::max(10.0, std::ceil(seconds / 60 * 3 / 5) * 5))
                               : message("--steps ", 3 * outcome.step);
  return message("the run ended ", why, "; the same command with ", more, " continues from here");
}

}  // namespace

RunFolder::RunFolder(const fs::path& out, const RunIdentity& identity, RunObserver& observer)
    : is_new_(!path_exists(out)),
      exceptions_(std::uncaught_exceptions()),
      path_(out),
      lock_((make_directories(out), out)),
      identity_(identity) {
  const fs::path file = out / kRunFile;
  const bool begun = train::CheckpointStore(out).last().has_value();
  if (begun) {
    require(fs::exists(file), out.string(),
            " contains a run of an earlier version of Fovea, which cannot be resumed; choose another folder");
    compare_runs(load_json(file), identity, out, observer);
  }
  const Json json = identity_json(identity);
  if (fs::exists(file) && read_text(file) == json.dump(2) + "\n") return;
  // A run that never came to its first checkpoint leaves nothing to continue from.
  std::error_code ignored;
  if (!begun) fs::remove_all(out / kTokenizerFolder, ignored);
  save_json(file, json);
}

RunFolder::~RunFolder() {
  if (!is_new_ || std::uncaught_exceptions() <= exceptions_) return;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    const bool empty =
        entry.is_directory(error) && fs::is_empty(entry.path(), error);  // checkpoints, before the first
    // The lock and unfinished files begin with a dot.
    if (name != kRunFile && name != kTokenizerFolder && !name.starts_with('.') && !empty) return;
  }
  if (!error) fs::remove_all(path_, error);
}

data::Tokenizers RunFolder::tokenizers(const std::function<data::Tokenizers()>& learn) const {
  const fs::path kept = path() / kTokenizerFolder;
  if (fs::is_directory(kept)) return data::load_tokenizers(kept);
  data::Tokenizers tokenizers = learn();
  DirectorySet set(kept);
  data::save_tokenizers(set.path(), tokenizers);
  set.commit();
  return tokenizers;
}

std::shared_ptr<const data::Tokenizer> learn_tokenizer(const std::string& tokenizer, int64_t vocabulary,
                                                       std::span<const std::span<const std::string>> texts) {
  if (tokenizer == "words") return data::count_words(texts, {.max_size = vocabulary});
  require(tokenizer == "bpe" || tokenizer == "unigram", "tokenizer: got ", in_quotes(tokenizer),
          ", wanted bpe, unigram or words");
  check_vocabulary(tokenizer, vocabulary);
  return data::train_sentencepiece(texts, {.type = tokenizer, .size = static_cast<int32_t>(vocabulary)});
}

TrainingOutcome run_training(const RunFolder& folder, const TrainingPlan& plan, RunObserver& observer) {
  require(plan.validate || plan.options.patience == 0, "patience: got ", plan.options.patience,
          ", but there is no validation data to stop early by; give --valid, or "
          "leave out --patience");
  const uint64_t seed = plan.options.seed;
  data::BatchOrder order(plan.sizes, folder.identity().data, {.max_tokens = plan.batch_size, .seed = seed});
  const int64_t a_pass = order.batches_per_epoch();
  train::TrainOptions options = plan.options;
  if (!options.steps && (options.minutes == 0 || plan.more_passes_overfit))
    options.steps =
        std::clamp<int64_t>(std::llround(plan.passes * static_cast<double>(a_pass)), 300, 100'000);
  std::string length = options.steps ? counted(*options.steps, "step") : "as many steps as fit in the time";
  if (options.steps && options.minutes > 0) length += ", or as many as fit in the time";
  observer.on_note(message("batches of at most ", plan.batch_size, " ", plan.batch_unit, ", ", a_pass,
                           " a pass; ", length));

  train::Job job;
  job.next_loss = [&](nn::Context& context) { return plan.loss(order.next(), context); };
  job.position = [&] { return Json(order.position().text()); };
  job.seek = [&](const Json& json) {
    std::string text;
    value_from_json(json, text, "checkpoint: position");
    order.seek(data::BatchPosition::parse(text));
  };
  job.validate = plan.validate;
  job.higher_is_better = !plan.lower_is_better;
  job.unit = plan.unit;
  job.save_more = plan.save_config;
  job.should_stop = plan.should_stop;
  job.identity = Json{{"task", folder.identity().task}, {"data", folder.identity().data}};

  const std::vector<train::ParameterGroup> all = {{plan.network->parameters()}};
  train::Trainer trainer(*plan.network, plan.groups.empty() ? all : plan.groups, plan.rule, plan.schedule,
                         options, job);
  TrainingOutcome outcome;
  outcome.parameters = plan.network->parameter_count();
  outcome.outcome = trainer.run_locked(folder.path(), observer);
  outcome.step = outcome.weights_step = trainer.step();
  if (trainer.best().best && (job.validate || outcome.outcome == train::Outcome::already_finished)) {
    outcome.best = *trainer.best().best;
    outcome.weights_step = trainer.best().best_step;
  }
  if (outcome.outcome == train::Outcome::interrupted) return outcome;
  const fs::path& out = folder.path();
  choose_weights(out, plan, observer, outcome);
  plan.save_model(out);
  write_curve(out);
  write_atomically(out / "README.md", model_card(plan, outcome));
  const double passes = static_cast<double>(order.position().epoch) +
                        static_cast<double>(order.position().index) / static_cast<double>(a_pass);
  outcome.advice = advice_for(out, plan, outcome, trainer.seconds(), passes);
  return outcome;
}

train::ScheduleOptions schedule_of(const std::string& name, double warmup) {
  train::ScheduleOptions schedule{.name = name};
  if (warmup >= 1)
    schedule.warmup = std::llround(warmup);
  else
    schedule.warmup_share = warmup;
  return schedule;
}

void check_rates(double learning_rate, double warmup, double smoothing, double weight_decay) {
  require(learning_rate > 0 && learning_rate <= 100, "learning_rate: got ", learning_rate,
          ", wanted a number above 0, such as 0.001");
  require(warmup >= 0 && warmup <= 1e9, "warmup: got ", warmup,
          ", wanted a share of the run below 1, or a number of steps");
  require(smoothing >= 0 && smoothing < 1, "smoothing: got ", smoothing, ", wanted at least 0 and below 1");
  require(weight_decay >= 0 && weight_decay <= 100, "weight_decay: got ", weight_decay,
          ", wanted 0 to 100, such as 0.01");
}

void check_vocabulary(const std::optional<std::string>& tokenizer, const std::optional<int64_t>& vocabulary) {
  if (!vocabulary) return;
  constexpr int64_t kMost = 1'000'000;
  require(*vocabulary >= 0 && *vocabulary <= kMost, "vocabulary: got ", *vocabulary, ", wanted 0 to ", kMost);
  require(*vocabulary > 0 || !tokenizer || *tokenizer == "words", "vocabulary: got 0 with the tokenizer ",
          in_quotes(tokenizer.value_or("")),
          "; wanted a number of tokens, such as 8000 (0, for all, needs words)");
}

void require_classes(std::span<const std::string> classes, const char* unit, const std::string& path) {
  require(classes.size() >= 2, path, ": every ", unit, " has the class ",
          in_quotes(classes.empty() ? "" : classes[0]), ", wanted at least two classes");
}

int64_t batch_for(int64_t total, int64_t least, int64_t most) {
  return std::clamp(total / 100, least, most);
}

std::string counted(int64_t count, const char* noun) {
  return message(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace fovea::tasks
