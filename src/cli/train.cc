// fovea train: from one's own files to a model folder.
#include <algorithm>
#include <concepts>
#include <iostream>
#include <map>
#include <optional>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/verbs.h"
#include "models/registry.h"
#include "tasks/train_translate.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Two parallel files, or one tab-separated file; gzip is read as it is. Started again on the same --out, "
    "training goes\n"
    "on from its last checkpoint. Ctrl-C and SIGTERM save and stop, with exit status 130 and 143.\n\n"
    "Every flag but the files may stand in a JSON file given by --config, with underscores for dashes; flags "
    "win over it.\n"
    "  fovea train translate --train train.en train.de --valid valid.en valid.de --out model --minutes 30";

// What the line said, in the order of precedence: preset, then config file, then flags.
struct Line {
  std::vector<std::string> train, valid;
  std::string out, preset = "small", config;
  bool dump_config = false;
  Json flags = Json::object();  // the options given as flags, by field name
  std::string command;
};

struct Settings {
  tasks::TranslateTraining training;
  train::TrainOptions options{.steps = 100000,
                              .clip_norm = 1,
                              .average = 5,
                              .log_every = 50,
                              .validate_every = 1000,
                              .save_every = 1000};
  Json model = Json::object();
};

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Adds a flag for every field; what is given is kept as JSON, so that flags, file and preset are one kind of
// thing.
template <class Field, class Default>
CLI::Option* add_json_flag(CLI::App& verb, Line& line, const Field& field, const Default& shown) {
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
void add_json_flags(CLI::App& verb, Line& line, const std::string& group, const T& defaults) {
  for_each_field<T>(
      [&](const auto& field) { add_json_flag(verb, line, field, defaults.*field.member)->group(group); });
}

// One flag for each setting that any model has. Which models take it stands beside it; the meaning and the
// default are of the first.
void add_model_flags(CLI::App& verb, Line& line) {
  std::map<std::string, std::string> takers;
  models::for_each_translation_model([&](const auto& entry) {
    for (const std::string_view name : models::translation_settings(entry.name)) {
      std::string& names = takers[std::string(name)];
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
  });
  models::for_each_translation_model([&]<class Entry>(const Entry& entry) {
    using Config = typename Entry::Config;
    const auto own = models::translation_settings(entry.name);
    for_each_field<Config>([&](const auto& field) {
      if (!contains(own, field.name) || verb.get_option_no_throw(flag_name(field.name)) != nullptr) return;
      CLI::Option* option = add_json_flag(verb, line, field, Config{}.*field.member)->group("Model");
      option->description(message(field.meaning, " (", takers[field.name], ")"));
    });
  });
}

// Sets named options on whichever struct has the name.
void apply(const Json& values, Settings& settings, const std::string& where) {
  const auto training = field_names<tasks::TranslateTraining>(), options = field_names<train::TrainOptions>();
  const std::string& model = settings.training.model;
  const auto own = models::translation_settings(model);
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
      models::translation_config(model, one, 0, 0, where);
      settings.model[item.key()] = item.value();
    } else {
      fail(where, ": unknown option ", in_quotes(item.key()), " for the model ", model,
           name_hint(item.key(), known));
    }
  }
}

Settings settle(const Line& line) {
  Settings settings;
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
  tasks::apply_preset(preset, settings.training, settings.model);
  if (!line.config.empty()) apply(file, settings, line.config);
  apply(line.flags, settings, "flags");
  // A time limit alone means: as many steps as fit.
  const bool steps_given = line.flags.contains("steps") || file.contains("steps");
  if (settings.options.minutes > 0 && !steps_given) settings.options.steps = train::kAnySteps;
  return settings;
}

void run_translate(const Line& line) {
  const Settings settings = settle(line);
  if (line.dump_config) {
    Json all = fields_to_json(settings.training);
    all.update(fields_to_json(settings.options));
    const Json model = models::translation_config(settings.training.model, settings.model, 0, 0);
    for (const std::string_view name : models::translation_settings(settings.training.model))
      all[std::string(name)] = model[std::string(name)];
    std::cout << all.dump(2) << '\n';
    return;
  }
  require(!line.train.empty() && !line.out.empty(),
          "train translate: --train and --out are needed; see fovea train translate --help");
  const tasks::TranslateFiles files{line.train[0], line.train.size() > 1 ? line.train[1] : "",
                                    line.valid.empty() ? "" : line.valid[0],
                                    line.valid.size() > 1 ? line.valid[1] : "", line.out};
  const StopSignals signals;
  TrainProgress<> progress(std::cerr, terminal_columns());
  const tasks::TranslateOutcome result =
      tasks::train_translate(files, settings.training, settings.model, settings.options, line.command,
                             progress, [] { return StopSignals::received() != 0; });
  progress.end();
  if (result.outcome == train::Outcome::interrupted) {
    std::cerr << "stopped after step " << result.step << ", saved in " << line.out
              << "; the same command goes on from there\n";
    throw CLI::RuntimeError(interrupted_status(StopSignals::received()));
  }
  if (result.outcome == train::Outcome::already_finished)
    std::cout << "already trained: " << line.out << " holds a finished run of " << result.step
              << " steps; --steps with a larger number trains on";
  else
    std::cout << "trained " << result.step << " steps";
  if (result.best_bleu >= 0) std::cout << "; best BLEU " << result.best_bleu;
  std::cout << "\nnext: fovea translate " << line.out << " < source.txt\n";
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "train a model on your own files");
  train->require_subcommand(1);
  CLI::App* verb = train->add_subcommand("translate", "a translator from parallel text");
  const auto line = std::make_shared<Line>();
  verb->add_option("--train", line->train, "source and target file, or one with tabs")
      ->expected(1, 2)
      ->type_name("FILE FILE");
  verb->add_option("--valid", line->valid, "the same, held out for validation")
      ->expected(1, 2)
      ->type_name("FILE FILE");
  verb->add_option("--out", line->out, "model folder; holds the run's checkpoints too")->type_name("DIR");
  verb->add_option("--preset", line->preset, "size: tiny, small or base")->capture_default_str();
  verb->add_option("--config", line->config, "JSON file of options")->type_name("FILE");
  verb->add_flag("--dump-config", line->dump_config, "print all options as a config file, and stop");
  add_threads(*verb);
  add_json_flags(*verb, *line, "Task", Settings().training);
  add_json_flags(*verb, *line, "Training", Settings().options);
  add_model_flags(*verb, *line);
  verb->footer(kFooter);
  verb->callback([line, verb] {
    line->command = "fovea train translate";
    for (const CLI::Option* option : verb->get_options())
      if (option->count() > 0 && !option->get_lnames().empty()) {
        line->command += " --" + option->get_lnames()[0];
        for (const std::string& value : option->results())
          if (option->get_type_size() != 0) line->command += " " + value;
      }
    run_translate(*line);
  });
}

}  // namespace fovea::cli
