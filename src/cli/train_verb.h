// What the verbs of `fovea train` share: flags and help made of a task's settings (tasks/setting.h), and what
// is said at the end.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "tasks/train_settings.h"

namespace fovea::cli {

// The command line of a training.
struct TrainFlags {
  std::vector<std::string> train, valid;
  std::string out, preset, config;
  bool dump_config = false;
  Json values = Json::object();  // the settings given as flags, by name
  std::string command = {};      // the whole line, for the model card
};

struct PresetNames {
  std::string all = "tiny, small or base", standard = "small";
};

// --out, --preset, --config, --dump-config, --threads and a flag for each of `settings`. The help shows the
// settings that `chosen` gives for what the line says, with their defaults.
void add_train_flags(CLI::App& verb, const std::shared_ptr<TrainFlags>& flags,
                     const std::vector<tasks::Setting>& settings,
                     const std::function<std::vector<tasks::Setting>(const tasks::TrainRequest&)>& chosen,
                     const PresetNames& presets);

tasks::TrainRequest request_of(const TrainFlags& flags);
// "train classify", "pretrain".
std::string verb_name(const CLI::App& verb);
// The line as it was given: "fovea train classify --train a.tsv".
std::string command_of(const CLI::App& verb);

// --train and --valid. train_help: what --train takes; type: how the help calls a value; most: how many values each may
// have, 0 for any number.
void add_data_flags(CLI::App& verb, const std::shared_ptr<TrainFlags>& flags, const char* train_help,
                    const char* type, int most);

// The text below the options: about the task, about every training, examples.
std::string training_help(const char* about, const char* examples);

// Says how far a run came, with what score, and what comes next. Throws the exit status of a run that was
// interrupted.
void report_training(const TrainFlags& flags, const tasks::TrainingOutcome& outcome, const std::string& score,
                     const std::string& next);

// Adds the flags of a task; run(flags, settings) once the line is read. --train and --valid are the task's
// own; `data` is the flag that fills TrainFlags::train.
template <class Training, class Run>
void add_training(CLI::App& verb, const std::shared_ptr<TrainFlags>& flags, Run run,
                  const char* data = "--train") {
  PresetNames presets{.standard = tasks::default_preset<Training>()};
  if constexpr (requires { Training::kPresets; }) {
    presets.all.clear();
    for (const char* name : Training::kPresets)
      presets.all += (presets.all.empty() ? "" : ", ") + std::string(name);
  }
  add_train_flags(verb, flags, tasks::all_settings<Training>(), tasks::settings_of<Training>, presets);
  verb.callback([flags, &verb, run, data] {
    flags->command = command_of(verb);
    const tasks::TrainSettings<Training> settings = tasks::settle<Training>(request_of(*flags));
    if (flags->dump_config) {
      std::cout << tasks::settings_json(settings).dump(2) << '\n';
      return;
    }
    require(!flags->train.empty() && !flags->out.empty(), verb_name(verb), ": ", data,
            " and --out are needed; see fovea ", verb_name(verb), " --help");
    run(*flags, settings);
  });
}

}  // namespace fovea::cli
