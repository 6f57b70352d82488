// fovea train translate: a translator from parallel text.
#include "tasks/train_translate.h"
#include "cli/train_progress.h"
#include "cli/train_settings.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "Two parallel files, or one tab-separated file; gzip is read as it is. Started again on the same --out, "
    "training goes\n"
    "on from its last checkpoint. Ctrl-C and SIGTERM save and stop, with exit status 130 and 143.\n\n"
    "Every flag but the files may stand in a JSON file given by --config, with underscores for dashes; flags "
    "win over it.\n"
    "  fovea train translate --train train.en train.de --valid valid.en valid.de --out model --minutes 30";

struct TranslateTask {
  using Models = models::Translators;
  using Training = tasks::TranslateTraining;
  static train::TrainOptions options() {
    return {.steps = 100000,
            .clip_norm = 1,
            .average = 5,
            .log_every = 50,
            .validate_every = 1000,
            .save_every = 1000};
  }
};

void run(const TrainLine& line, const TrainSettings<TranslateTask>& settings) {
  const tasks::TranslateFiles files{line.train[0], line.train.size() > 1 ? line.train[1] : "",
                                    line.valid.empty() ? "" : line.valid[0],
                                    line.valid.size() > 1 ? line.valid[1] : "", line.out};
  const StopSignals signals;
  TrainProgress<> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_translate(files, settings.training, settings.model, settings.options, line.command,
                             progress, [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(line, result.outcome, result.step,
                  result.best >= 0 ? message("best BLEU ", result.best) : "",
                  "fovea translate " + line.out + " < source.txt");
}

}  // namespace

void add_train_translate(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("translate", "a translator from parallel text");
  const auto line = std::make_shared<TrainLine>();
  verb->add_option("--train", line->train, "source and target file, or one with tabs")
      ->expected(1, 2)
      ->type_name("FILE FILE");
  verb->add_option("--valid", line->valid, "the same, held out for validation")
      ->expected(1, 2)
      ->type_name("FILE FILE");
  verb->footer(kFooter);
  add_training<TranslateTask>(*verb, line, "translate", run);
}

}  // namespace fovea::cli
