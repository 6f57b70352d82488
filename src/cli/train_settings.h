// The settings of a training as people give them: a preset, then a config file, then flags, each over the one
// before. One machinery for every task that can be trained.
//
// A Task names its Models (a family of models/registry.h), its Training (a struct with fields, `model` among
// them), and its options(): the defaults of train::TrainOptions.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <concepts>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/signals.h"
#include "models/registry.h"
#include "train/trainer.h"

namespace fovea::cli {

// What the line said.
struct TrainLine {
  std::vector<std::string> train, valid;
  std::string out, preset = "small", config;
  bool dump_config = false;
  Json flags = Json::object();  // the options given as flags, by field name
  std::string command;
};

template <class Task>
struct TrainSettings {
  typename Task::Training training;
  train::TrainOptions options = Task::options();
  Json model = Json::object();
};

inline bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Adds a flag for every field; what is given is kept as JSON, so that flags, file and preset are one kind of
// thing.
template <class Field, class Default>
CLI::Option* add_json_flag(CLI::App& verb, TrainLine& line, const Field& field, const Default& shown) {
  const std::string name = field.name, flag = flag_name(name);
  const std::string standard = message("[", value_to_json(shown).dump(), "]");
  if constexpr (std::same_as<Default, bool>) {
    // --skip-bad alone is true; --joint false says no.
    const auto keep = [&line, name, flag](const std::string& value) {
      const bool yes = value.empty() || value == "true" || value == "1";
      require(yes || value == "false" || value == "0", flag, ": got ", in_quotes(value),
              ", wanted true or false");
      line.flags[name] = yes;
    };
    // What default_str() says would be taken for the value of a flag given alone.
    return verb.add_option_function<std::string>(flag, keep, field.meaning)
        ->expected(0, 1)
        ->type_name("BOOLEAN=" + standard);
  } else {
    const auto keep = [&line, name](const Default& value) { line.flags[name] = value_to_json(value); };
    return refuse_negative<Default>(verb.add_option_function<Default>(flag, keep, field.meaning))
        ->default_str(standard);
  }
}

template <HasFields T>
void add_json_flags(CLI::App& verb, TrainLine& line, const std::string& group, const T& defaults) {
  for_each_field<T>(
      [&](const auto& field) { add_json_flag(verb, line, field, defaults.*field.member)->group(group); });
}

// One flag for each setting that any model has. Which models take it stands beside it; the meaning and the
// default are of the first.
template <class Models>
void add_model_flags(CLI::App& verb, TrainLine& line) {
  std::map<std::string, std::string> takers;
  Models::for_each([&](const auto& entry) {
    for (const std::string_view name : models::model_settings<Models>(entry.name)) {
      std::string& names = takers[std::string(name)];
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
  });
  Models::for_each([&]<class Entry>(const Entry& entry) {
    using Config = typename Entry::Config;
    const auto own = models::model_settings<Models>(entry.name);
    for_each_field<Config>([&](const auto& field) {
      if (!contains(own, field.name) || verb.get_option_no_throw(flag_name(field.name)) != nullptr) return;
      CLI::Option* option = add_json_flag(verb, line, field, Config{}.*field.member)->group("Model");
      option->description(message(field.meaning, " (", takers[field.name], ")"));
    });
  });
}

// Sets named options on whichever struct has the name.
template <class Task>
void apply(const Json& values, TrainSettings<Task>& settings, const std::string& where) {
  using Models = typename Task::Models;
  const auto training = field_names<typename Task::Training>(), options = field_names<train::TrainOptions>();
  const std::string& model = settings.training.model;
  const auto own = models::model_settings<Models>(model);
  std::vector<std::string_view> known = own;
  known.insert(known.end(), training.begin(), training.end());
  known.insert(known.end(), options.begin(), options.end());
  require(values.is_object(), where, ": wanted an object of named options");
  for (const auto& item : values.items()) {
    const Json one = {{item.key(), item.value()}};
    if (contains(training, item.key())) {
      fields_from_json(one, settings.training, where);
    } else if (contains(options, item.key())) {
      fields_from_json(one, settings.options, where);
    } else if (contains(own, item.key())) {
      models::model_config<Models>(model, one, Json::object(), where);
      settings.model[item.key()] = item.value();
    } else {
      fail(where, ": unknown option ", in_quotes(item.key()), " for the model ", model,
           name_hint(item.key(), known));
    }
  }
}

template <class Task>
TrainSettings<Task> settle(const TrainLine& line) {
  TrainSettings<Task> settings;
  Json file = line.config.empty() ? Json::object() : load_json(line.config);
  std::string preset = line.preset;
  if (file.is_object() && file.contains("preset")) {
    value_from_json(file["preset"], preset, line.config + ": preset");
    file.erase("preset");
  }
  // The model comes first: what else may be said depends on it.
  for (const Json* said : std::initializer_list<const Json*>{&file, &line.flags})
    if (said->is_object() && said->contains("model"))
      value_from_json((*said)["model"], settings.training.model, "model");
  if constexpr (requires { settings.training.from; })
    for (const Json* said : std::initializer_list<const Json*>{&file, &line.flags})
      if (said->is_object() && said->contains("from"))
        value_from_json((*said)["from"], settings.training.from, "from");
  apply_preset(preset, settings.training, settings.model);
  if (!line.config.empty()) apply(file, settings, line.config);
  apply(line.flags, settings, "flags");
  // A time limit alone means: as many steps as fit.
  const bool steps_given = line.flags.contains("steps") || file.contains("steps");
  if (settings.options.minutes > 0 && !steps_given) settings.options.steps = train::kAnySteps;
  return settings;
}

// All settings as a config file.
template <class Task>
void dump(const TrainSettings<Task>& settings) {
  using Models = typename Task::Models;
  Json all = fields_to_json(settings.training);
  all.update(fields_to_json(settings.options));
  // A pretrained encoder has no settings to choose, and what is printed must be taken as a config file.
  if constexpr (requires { settings.training.from; })
    if (!settings.training.from.empty()) {
      std::cout << all.dump(2) << '\n';
      return;
    }
  const Json model = models::model_config<Models>(settings.training.model, settings.model);
  for (const std::string_view name : models::model_settings<Models>(settings.training.model))
    all[std::string(name)] = model[std::string(name)];
  std::cout << all.dump(2) << '\n';
}

// The flags that every training has; run(settings) once the line is read. --train and --valid are the task's
// own.
template <class Task, class Run>
void add_training(CLI::App& verb, const std::shared_ptr<TrainLine>& line, const std::string& name, Run run) {
  verb.add_option("--out", line->out, "model folder; holds the run's checkpoints too")->type_name("DIR");
  verb.add_option("--preset", line->preset, "size: tiny, small or base")->capture_default_str();
  verb.add_option("--config", line->config, "JSON file of options")->type_name("FILE");
  verb.add_flag("--dump-config", line->dump_config, "print all options as a config file, and stop");
  add_threads(verb);
  add_json_flags(verb, *line, "Task", typename Task::Training());
  add_json_flags(verb, *line, "Training", Task::options());
  add_model_flags<typename Task::Models>(verb, *line);
  verb.callback([line, &verb, name, run] {
    line->command = "fovea train " + name;
    for (const CLI::Option* option : verb.get_options())
      if (option->count() > 0 && !option->get_lnames().empty()) {
        line->command += " --" + option->get_lnames()[0];
        for (const std::string& value : option->results())
          if (option->get_type_size() != 0) line->command += " " + value;
      }
    const TrainSettings<Task> settings = settle<Task>(*line);
    if (line->dump_config) return dump(settings);
    require(!line->train.empty() && !line->out.empty(), "train ", name,
            ": --train and --out are needed; see fovea train ", name, " --help");
    run(*line, settings);
  });
}

// What is said at the end: how far it came, and `score`, which may be empty. Throws the exit status of a run
// that was interrupted.
inline void report_training(const TrainLine& line, train::Outcome outcome, int64_t step,
                            const std::string& score, const std::string& next) {
  if (outcome == train::Outcome::interrupted) {
    std::cerr << "stopped after step " << step << ", saved in " << line.out
              << "; the same command goes on from there\n";
    throw CLI::RuntimeError(interrupted_status(StopSignals::received()));
  }
  if (outcome == train::Outcome::already_finished)
    std::cout << "already trained: " << line.out << " holds a finished run of " << step
              << " steps; --steps with a larger number trains on";
  else
    std::cout << "trained " << step << " steps";
  if (!score.empty()) std::cout << "; " << score;
  std::cout << "\nnext: " << next << '\n';
}

}  // namespace fovea::cli
