// fovea train classify: a text classifier from labelled texts.
#include "tasks/train_classify.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Files: tab-separated, .csv, or lines that begin with their label (with or without fastText's __label__), plain or
gzip. Columns are chosen by their names in a header row (label, class, sentiment...; text, sentence, review...),
else by what they hold: labels have few different values, texts are long. The choice is printed; --label-column and
--text-column overrule it.

Run again with the same --out, training continues from the last checkpoint. Ctrl-C, SIGTERM and SIGHUP save and stop, with
exit status 130, 143 and 129. Options can also stand in the JSON file of --config, with underscores for dashes; flags
take precedence.

  fovea train classify --train train.tsv --valid dev.tsv --out model --minutes 10
  fovea train classify --from all-MiniLM-L6-v2 --train train.tsv --valid dev.tsv --out model
  fovea train classify --model transformer --self-attention "scaled_dot / window(64,64)|global(0)" --max-length 4096 ...)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::ClassifyTraining>& settings) {
  const tasks::ClassifyFiles files{flags.train[0], flags.valid.empty() ? "" : flags.valid[0], flags.out};
  const StopSignals signals;
  RunProgress<tasks::RunObserver> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_classify(files, settings.training, settings.model, settings.options, flags.command,
                            progress, [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(flags, result, result.best >= 0 ? message("accuracy ", result.best, " %") : "",
                  "fovea classify " + flags.out + " < texts.txt");
}

}  // namespace

void add_train_classify(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("classify", "a text classifier from labelled texts");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("--train", flags->train, "file of labelled texts to train on")
      ->expected(1)
      ->type_name("FILE");
  verb->add_option("--valid", flags->valid,
                   "the same for validation: held-out data that decides which weights are kept")
      ->expected(1)
      ->type_name("FILE");
  verb->footer(kFooter);
  add_training<tasks::ClassifyTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
