// fovea train translate: a translator from parallel text.
#include "tasks/train_translate.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter = R"help(Text: two parallel files, or one tab-separated file, plain or gzip.

Run again with the same --out, training continues from the last checkpoint. Ctrl-C, SIGTERM and SIGHUP save and stop, with
exit status 130, 143 and 129. Options can also stand in the JSON file of --config, with underscores for dashes; flags
take precedence.

  fovea train translate --train train.en train.de --valid valid.en valid.de --out model --minutes 30)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::TranslateTraining>& settings) {
  const tasks::TranslateFiles files{flags.train[0], flags.train.size() > 1 ? flags.train[1] : "",
                                    flags.valid.empty() ? "" : flags.valid[0],
                                    flags.valid.size() > 1 ? flags.valid[1] : "", flags.out};
  const StopSignals signals;
  TrainProgress<> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_translate(files, settings.training, settings.model, settings.options, flags.command,
                             progress, [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(flags, result, result.best >= 0 ? message("BLEU ", result.best) : "",
                  "fovea translate " + flags.out + " < source.txt");
}

}  // namespace

void add_train_translate(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("translate", "a translator from parallel text");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("--train", flags->train, "source and target file to train on, or one tab-separated file")
      ->expected(1, 2)
      ->type_name("FILE FILE");
  verb->add_option("--valid", flags->valid,
                   "the same for validation: held-out data that decides which weights are kept")
      ->expected(1, 2)
      ->type_name("FILE FILE");
  verb->footer(kFooter);
  add_training<tasks::TranslateTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
