// fovea train: from one's own files to a model folder.
#include <iostream>
#include <optional>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/verbs.h"
#include "models/transformer.h"
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

const std::vector<std::string_view> kFilledIn = {"source_vocabulary", "target_vocabulary"};

bool filled_in(std::string_view name) {
  return std::find(kFilledIn.begin(), kFilledIn.end(), name) != kFilledIn.end();
}

template <HasFields T>
bool has_field(std::string_view name) {
  const auto names = field_names<T>();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Adds a flag for every field; what is given is kept as JSON, so that flags, file and preset are one kind of
// thing.
template <HasFields T>
void add_json_flags(CLI::App& verb, Line& line, const std::string& group) {
  for_each_field<T>([&](const auto& field) {
    using Value = std::remove_cvref_t<decltype(std::declval<T>().*field.member)>;
    if (filled_in(field.name)) return;
    const std::string name = field.name;
    const auto keep = [&line, name](const Value& value) { line.flags[name] = value_to_json(value); };
    const std::string shown = message("[", value_to_json(T{}.*field.member).dump(), "]");
    verb.add_option_function<Value>(flag_name(name), keep, field.meaning)->group(group)->default_str(shown);
  });
}

// Sets named options on whichever struct has the name.
void apply(const Json& values, Settings& settings, const std::string& where) {
  std::vector<std::string_view> known = field_names<tasks::TranslateTraining>();
  for (const auto& name : field_names<train::TrainOptions>()) known.push_back(name);
  for (const auto& name : field_names<models::TransformerConfig>())
    if (!filled_in(name)) known.push_back(name);
  require(values.is_object(), where, ": wanted an object of named options");
  for (const auto& item : values.items()) {
    const Json one = {{item.key(), item.value()}};
    if (has_field<tasks::TranslateTraining>(item.key())) {
      fields_from_json(one, settings.training, where);
    } else if (has_field<train::TrainOptions>(item.key())) {
      fields_from_json(one, settings.options, where);
    } else if (has_field<models::TransformerConfig>(item.key()) && !filled_in(item.key())) {
      models::TransformerConfig check;
      fields_from_json(one, check, where);
      settings.model[item.key()] = item.value();
    } else {
      fail(where, ": unknown option ", in_quotes(item.key()), name_hint(item.key(), known));
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
  tasks::apply_preset(preset, settings.training, settings.model);
  if (!line.config.empty()) apply(file, settings, line.config);
  apply(line.flags, settings, "flags");
  // A time limit alone means: as many steps as fit.
  const bool steps_given = line.flags.contains("steps") || file.contains("steps");
  if (settings.options.minutes > 0 && !steps_given) settings.options.steps = int64_t{1} << 40;
  return settings;
}

void run_translate(const Line& line) {
  const Settings settings = settle(line);
  if (line.dump_config) {
    Json all = fields_to_json(settings.training);
    all.update(fields_to_json(settings.options));
    all.update(settings.model);
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
              << " steps; --steps with a larger number trains on\n";
  else
    std::cout << "trained " << result.step << " steps";
  if (result.best_bleu >= 0) std::cout << ", best BLEU " << result.best_bleu;
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
  add_json_flags<tasks::TranslateTraining>(*verb, *line, "Task");
  add_json_flags<train::TrainOptions>(*verb, *line, "Training");
  add_json_flags<models::TransformerConfig>(*verb, *line, "Model");
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
