// Trainings: the settings are the lists that the command line makes its flags of. Ctrl-C stops a training, which saves,
// and becomes KeyboardInterrupt; so does whatever the progress callback raises.
#include "python/train.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "base/thread_limit.h"
#include "tasks/pretrain.h"
#include "tasks/train_caption.h"
#include "tasks/train_classify.h"
#include "tasks/train_clip.h"
#include "tasks/train_glimpse.h"
#include "tasks/train_image.h"
#include "tasks/train_partition.h"
#include "tasks/train_series.h"
#include "tasks/train_settings.h"
#include "tasks/train_translate.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using tasks::TrainingOutcome;
using Paths = std::vector<std::string>;

// What Python asked for, and what it is told while the training runs.
struct Request {
  Paths train, valid;
  std::map<std::string, Paths, std::less<>> other_files;  // those that only this task has, by name
  std::string out;
  tasks::TrainRequest settings;
  std::string command;
};

// Calls Python between steps, with the GIL; keeps the first exception, which ends the training.
class Caller {
 public:
  explicit Caller(nb::object callback) : callback_(std::move(callback)) {}

  template <class... Values>
  void tell(const char* event, const Values&... values) {
    if (callback_.is_none()) return;
    const nb::gil_scoped_acquire acquire;
    guard([&] {
      nb::dict report;
      report["event"] = event;
      (set(report, values), ...);
      callback_(report);
    });
  }
  bool should_stop() {
    if (!error_) {
      const nb::gil_scoped_acquire acquire;
      guard([] {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      });
    }
    return error_.has_value();
  }
  // With the GIL.
  void rethrow() {
    if (error_) throw *std::exchange(error_, std::nullopt);
  }

 private:
  template <class Value>
  static void set(nb::dict& report, const std::pair<const char*, Value>& entry) {
    report[entry.first] = entry.second;
  }
  template <class F>
  void guard(const F& call) {
    if (error_) return;
    try {
      call();
    } catch (nb::python_error& error) {
      error_.emplace(std::move(error));
    }
  }

  nb::object callback_;
  std::optional<nb::python_error> error_;
};

template <class Base>
class Observer : public Base {
 public:
  explicit Observer(Caller& caller) : caller_(caller) {}
  void on_note(const std::string& text) override { caller_.tell("note", std::pair{"text", text}); }
  void on_resume(int64_t step) override { caller_.tell("resume", std::pair{"step", step}); }
  void on_save(int64_t step) override { caller_.tell("save", std::pair{"step", step}); }
  void on_step(const train::StepReport& r) override {
    caller_.tell("step", std::pair{"step", r.step},
                 std::pair{"steps", r.steps == train::kAnySteps ? 0 : r.steps}, std::pair{"loss", r.loss},
                 std::pair{"gradient_norm", r.gradient_norm}, std::pair{"learning_rate", r.learning_rate},
                 std::pair{"items_per_second", r.items_per_second}, std::pair{"unit", r.unit},
                 std::pair{"seconds_left", r.seconds_left}, std::pair{"logged", r.logged});
  }
  void on_validation(const train::ValidationReport& r) override {
    caller_.tell("validation", std::pair{"step", r.step}, std::pair{"value", r.result.value},
                 std::pair{"is_best", r.is_best});
  }

 private:
  Caller& caller_;
};

using Stop = std::function<bool()>;

// One task: its settings, and how it is run.
struct Task {
  size_t most_files;  // of train and of valid
  std::function<std::vector<tasks::Setting>()> settings;
  std::function<TrainingOutcome(const Request&, Caller&, const Stop&)> run;
  Paths other_files = {};  // names of the files that only it has
};
constexpr size_t kAnyCount = std::numeric_limits<size_t>::max();

std::string path_at(const Paths& paths, size_t i) {
  return i < paths.size() ? paths[i] : "";
}

// What `files` makes of a request is what the task reads.
template <class Training, class Watch, class Files, class Train>
Task task(size_t most_files, Files files, Train train) {
  return {most_files, tasks::all_settings<Training>,
          [files, train](const Request& request, Caller& caller, const Stop& stop) -> TrainingOutcome {
            const tasks::TrainSettings<Training> settings = tasks::settle<Training>(request.settings);
            Observer<Watch> observer(caller);
            return train(files(request), settings, request.command, observer, stop);
          }};
}

// A task whose files are lists of paths.
template <class Training, class Files, class Train>
Task of_lists(size_t most_files, Train train) {
  return task<Training, tasks::RunObserver>(
      most_files,
      [](const Request& r) {
        return Files{r.train, r.valid, r.out};
      },
      train);
}
// A task whose files are one path each.
template <class Training, class Files, class Train>
Task of_single_files(Train train) {
  return task<Training, tasks::RunObserver>(
      1,
      [](const Request& r) {
        return Files{path_at(r.train, 0), path_at(r.valid, 0), r.out};
      },
      train);
}

Task translation() {
  return task<tasks::TranslateTraining, tasks::TranslateObserver>(
      2,
      [](const Request& r) {
        return tasks::TranslateFiles{path_at(r.train, 0), path_at(r.train, 1), path_at(r.valid, 0),
                                     path_at(r.valid, 1), r.out};
      },
      tasks::train_translate);
}

// train: the pictures; the captions and the lists of names have files of their own.
Task captioning() {
  Task caption = task<tasks::CaptionTraining, tasks::CaptionObserver>(
      1,
      [](const Request& r) {
        const auto named = [&](const char* name) {
          const auto found = r.other_files.find(name);
          return found == r.other_files.end() ? Paths() : found->second;
        };
        const Paths split = named("split");
        const tasks::CaptionFiles files{.images = path_at(r.train, 0),
                                        .captions = named("captions"),
                                        .train = path_at(split, 0),
                                        .valid = path_at(split, 1),
                                        .encoder = path_at(named("encoder"), 0),
                                        .features = path_at(named("features"), 0),
                                        .out = r.out};
        require(r.valid.empty(), "train.caption: got valid, wanted split=[train, valid], two lists of names");
        require(!files.captions.empty() && !files.encoder.empty(),
                "train.caption: captions and encoder are needed");
        return files;
      },
      tasks::train_caption);
  caption.other_files = {"captions", "split", "encoder", "features"};
  return caption;
}

const std::map<std::string, Task, std::less<>>& all_tasks() {
  using namespace tasks;
  static const std::map<std::string, Task, std::less<>> list{
      {"caption", captioning()},
      {"classify", of_single_files<ClassifyTraining, ClassifyFiles>(train_classify)},
      {"clip", of_lists<ClipTraining, ClipFiles>(2, train_clip)},
      {"glimpse", of_lists<GlimpseTraining, GlimpseFiles>(2, train_glimpse)},
      {"image", of_lists<ImageTraining, ImageFiles>(2, train_image)},
      {"partition", of_single_files<PartitionTraining, PartitionFiles>(train_partition)},
      {"pretrain", of_lists<PretrainTraining, PretrainFiles>(kAnyCount, pretrain)},
      {"series", of_single_files<SeriesTraining, SeriesFiles>(train_series)},
      {"translate", translation()}};
  return list;
}

const Task& find_task(const std::string& name) {
  const auto found = all_tasks().find(name);
  if (found != all_tasks().end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& [task_name, task] : all_tasks()) known.push_back(task_name);
  fail("train: unknown task '", name, "'", name_hint(name, known));
}

const char* type_name(tasks::SettingType type) {
  switch (type) {
    case tasks::SettingType::truth:
      return "bool";
    case tasks::SettingType::integer:
      return "int";
    case tasks::SettingType::number:
      return "float";
    case tasks::SettingType::text:
      return "str";
  }
  return "";
}

// A list of objects as JSON: name, type, meaning, group, default, choices, models.
std::string settings_json(const std::string& task) {
  Json list = Json::array();
  for (const tasks::Setting& setting : find_task(task).settings())
    list.push_back({{"name", setting.name},
                    {"type", type_name(setting.type)},
                    {"meaning", setting.meaning},
                    {"group", setting.group},
                    {"default", setting.standard},
                    {"choices", setting.choices},
                    {"models", setting.models}});
  return list.dump();
}

const char* name_of(train::Outcome outcome) {
  switch (outcome) {
    case train::Outcome::finished:
      return "finished";
    case train::Outcome::stopped_early:
      return "stopped_early";
    case train::Outcome::out_of_time:
      return "out_of_time";
    case train::Outcome::interrupted:
      return "interrupted";
    case train::Outcome::already_finished:
      return "already_finished";
  }
  return "";
}

nb::dict train(const std::string& name, const Paths& train_files, const Paths& valid_files,
               const nb::dict& other_files, const std::string& out, const std::string& preset,
               const std::string& config, const std::string& config_name, const std::string& values,
               const std::string& command, nb::object callback, int threads) {
  const Task& task = find_task(name);
  require(!train_files.empty() && !out.empty(), "train.", name, ": train and out are needed");
  for (const auto* files : {&train_files, &valid_files})
    require(files->size() <= task.most_files, "train.", name, ": got ", files->size(),
            " files, wanted at most ", task.most_files);
  std::map<std::string, Paths, std::less<>> others;
  for (const auto& [key, paths] : other_files) others[nb::cast<std::string>(key)] = nb::cast<Paths>(paths);
  const Request request{.train = train_files,
                        .valid = valid_files,
                        .other_files = std::move(others),
                        .out = out,
                        .settings = {.preset = preset,
                                     .file = Json::parse(config),
                                     .file_name = config_name,
                                     .values = Json::parse(values)},
                        .command = command};
  Caller caller(std::move(callback));
  TrainingOutcome outcome;
  {
    const nb::gil_scoped_release release;
    const ThreadLimit limit(threads);
    outcome = task.run(request, caller, [&] { return caller.should_stop(); });
  }
  caller.rethrow();
  nb::dict summary;
  summary["outcome"] = name_of(outcome.outcome);
  summary["step"] = outcome.step;
  summary["parameters"] = outcome.parameters;
  summary["best"] = std::isnan(outcome.best) ? nb::none() : nb::cast(outcome.best);
  summary["weights_step"] = outcome.weights_step;
  summary["averaged"] = outcome.averaged;
  summary["advice"] = outcome.advice;
  return summary;
}

}  // namespace

void add_train(nb::module_& module) {
  // The name of each task, with those of the files that only it has.
  module.def("train_tasks", [] {
    nb::dict names;
    for (const auto& [name, task] : all_tasks()) names[name.c_str()] = nb::cast(task.other_files);
    return names;
  });
  module.def("train_settings", &settings_json, nb::arg("task"));
  module.def("train", &train, nb::arg("task"), nb::arg("train"), nb::arg("valid"), nb::arg("other_files"),
             nb::arg("out"), nb::arg("preset"), nb::arg("config"), nb::arg("config_name"), nb::arg("values"),
             nb::arg("command"), nb::arg("callback").none(), nb::arg("threads"));
}

}  // namespace fovea::python
