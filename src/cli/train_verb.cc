// Turns the settings of a training task into flags and help, reads them back as a request, and prints how a training
// ended.
#include "cli/train_verb.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "cli/signals.h"

namespace fovea::cli {
namespace {

using tasks::Setting;
using tasks::SettingType;

const char* type_name(SettingType type) {
  switch (type) {
    case SettingType::truth:
      return "BOOLEAN";
    case SettingType::integer:
      return "INT";
    case SettingType::number:
      return "FLOAT";
    case SettingType::text:
      return "TEXT";
  }
  return "";
}

std::string described(const Setting& setting) {
  if (setting.meaning.find("(default") != std::string::npos) return setting.meaning;  // says it itself
  const char* const joint = setting.standard.is_null() ? " (default: " : " (default ";
  return setting.meaning + joint + tasks::default_text(setting) + ")";
}

// As a shell reads it back: attention specs have spaces and bars.
std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 ||
           std::string_view("-_./,:=+@%").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

using Chooser = std::function<std::vector<Setting>(const tasks::TrainRequest&)>;

// Help that is made when it is requested: the defaults depend on the other options.
class TrainHelp : public CLI::Formatter {
 public:
  TrainHelp(CLI::App& verb, std::map<std::string, CLI::Option*> options, Chooser chosen,
            std::string standard_preset)
      : verb_(verb),
        options_(std::move(options)),
        chosen_(std::move(chosen)),
        standard_preset_(std::move(standard_preset)) {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    for (const auto& [setting, option] : options_) option->group("");  // what is not the model's is hidden
    std::string model;
    for (const Setting& setting : chosen_(request())) {
      CLI::Option* const option = options_.at(setting.name);
      option->description(described(setting));
      option->group(setting.group);
      if (setting.name == "model") model = " --model " + setting.standard.get<std::string>();
    }
    return CLI::Formatter::make_help(app, std::move(name), mode) + "\nDefaults are shown for --preset " +
           preset() + model + "; give others before --help to see theirs.\n";
  }

 private:
  // Options are read but not yet acted on when help is requested.
  std::string said(const char* flag, std::string otherwise = "") const {
    const CLI::Option* const option = verb_.get_option_no_throw(flag);
    return option == nullptr || option->empty() ? otherwise : option->results().back();
  }
  std::string preset() const { return said("--preset", standard_preset_); }
  tasks::TrainRequest request() const {
    tasks::TrainRequest request{.preset = preset()};
    if (const std::string file = said("--config"); !file.empty()) request.file = load_json(file);
    for (const char* name : {"model", "from"})
      if (const std::string value = said(flag_name(name).c_str()); !value.empty())
        request.values[name] = value;
    return request;
  }

  CLI::App& verb_;
  std::map<std::string, CLI::Option*> options_;
  Chooser chosen_;
  std::string standard_preset_;
};

CLI::Option* add_setting(CLI::App& verb, const std::shared_ptr<TrainFlags>& flags, const Setting& setting) {
  const std::string flag = flag_name(setting.name);
  const auto keep = [flags, setting, flag](const std::string& text) {
    flags->values[setting.name] = tasks::setting_from_text(setting, text, flag);
  };
  CLI::Option* const option = verb.add_option_function<std::string>(flag, keep, described(setting));
  // --skip-bad alone is true; --joint false says no.
  if (setting.type == SettingType::truth) option->expected(0, 1);
  return option->type_name(type_name(setting.type))->group(setting.group);
}

}  // namespace

void add_train_flags(CLI::App& verb, const std::shared_ptr<TrainFlags>& flags,
                     const std::vector<Setting>& settings, const Chooser& chosen,
                     const PresetNames& presets) {
  verb.add_option("--out", flags->out, "model folder to write; it also contains the checkpoints of the run")
      ->type_name("DIR");
  verb.add_option("--preset", flags->preset,
                  "size of the model: " + presets.all + " (default " + presets.standard + ")");
  verb.add_option("--config", flags->config, "JSON file with options")->type_name("FILE");
  verb.add_flag("--dump-config", flags->dump_config, "print all options as a config file, and stop");
  add_threads(verb);
  std::map<std::string, CLI::Option*> options;
  for (const Setting& setting : settings) options[setting.name] = add_setting(verb, flags, setting);
  verb.formatter(std::make_shared<TrainHelp>(verb, std::move(options), chosen, presets.standard));
}

tasks::TrainRequest request_of(const TrainFlags& flags) {
  tasks::TrainRequest request{.preset = flags.preset, .file_name = flags.config, .values = flags.values};
  if (!flags.config.empty()) request.file = load_json(flags.config);
  return request;
}

std::string verb_name(const CLI::App& verb) {
  const CLI::App* const parent = verb.get_parent();
  const bool below = parent != nullptr && parent->get_parent() != nullptr;
  return (below ? verb_name(*parent) + " " : "") + verb.get_name();
}

std::string command_of(const CLI::App& verb) {
  std::string command = "fovea " + verb_name(verb);
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    command += " --" + option->get_lnames()[0];
    if (option->get_type_size() == 0) continue;
    for (const std::string& value : option->results()) command += " " + shell_word(value);
  }
  return command;
}

void add_data_flags(CLI::App& verb, const std::shared_ptr<TrainFlags>& flags, const char* train_help,
                    const char* type, int most) {
  CLI::Option* train = verb.add_option("--train", flags->train, train_help)->type_name(type);
  CLI::Option* valid =
      verb.add_option("--valid", flags->valid,
                      "the same for validation: held-out data that decides which weights are kept")
          ->type_name(type);
  if (most == 0) return;
  train->expected(1, most);
  valid->expected(1, most);
}

std::string training_help(const char* about, const char* examples) {
  return std::string(about) + R"help(

Run again with the same --out, training continues from the last checkpoint. Ctrl-C, SIGTERM and SIGHUP save and stop, with
exit status 130, 143 and 129. Options can also be given in the JSON file of --config, with underscores instead of dashes;
flags take precedence.

)help" + examples;
}

void report_training(const TrainFlags& flags, const tasks::TrainingOutcome& outcome, const std::string& score,
                     const std::string& next) {
  if (outcome.outcome == train::Outcome::interrupted) {
    std::cerr << "stopped after step " << outcome.step << ", saved in " << flags.out
              << "; the same command resumes\n";
    throw CLI::RuntimeError(interrupted_status(StopSignals::received()));
  }
  if (outcome.outcome == train::Outcome::already_finished)
    std::cout << "already trained: " << flags.out << " contains a finished run of "
              << tasks::counted(outcome.step, "step")
              << "; a larger number of --steps or --minutes continues the training";
  else
    std::cout << "trained " << tasks::counted(outcome.step, "step");
  if (!score.empty()) std::cout << "; " << score;
  if (outcome.averaged > 0)
    std::cout << "; weights averaged over " << outcome.averaged << " checkpoints";
  else if (outcome.weights_step != outcome.step)
    std::cout << "; weights of step " << outcome.weights_step;
  std::cout << '\n';
  if (!outcome.advice.empty()) std::cout << "note: " << outcome.advice << '\n';
  std::cout << "next: " << next << '\n';
}

}  // namespace fovea::cli
