// fovea pretrain: an encoder of the BERT family from plain text.
#include "tasks/pretrain.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Text: a sentence on each line, blank lines between documents; several files, plain or gzip. A WordPiece vocabulary is
learnt from it. The model learns to tell masked words (15 % of them: 80 % become [MASK], 10 % another token, 10 % stay)
and whether the second text of a pair follows the first, with the optimiser of the original code (Devlin et al. 2019).

The result is a folder in Hugging Face's format (BertForPreTraining): fovea fill, fovea embed and fovea train classify
--from use it, and so do their libraries. --from goes on with such a folder on other text.

Run again with the same --out, training continues from the last checkpoint. Ctrl-C, SIGTERM and SIGHUP save and stop, with
exit status 130, 143 and 129. Options can also stand in the JSON file of --config, with underscores for dashes; flags
take precedence.

  fovea pretrain --train text.txt --valid held-out.txt --out model --preset tiny --minutes 60
  fovea train classify --train labelled.tsv --from model --out classifier)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::PretrainTraining>& settings) {
  const tasks::PretrainFiles files{flags.train, flags.valid, flags.out};
  const StopSignals signals;
  RunProgress<tasks::RunObserver> progress(std::cerr, terminal_columns());
  const tasks::PretrainOutcome result =
      tasks::pretrain(files, settings.training, settings.model, settings.options, flags.command, progress,
                      [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(flags, result,
                  result.best >= 0 ? message("masked words ", result.best, " %, next sentence ",
                                             result.next_accuracy, " %")
                                   : "",
                  "fovea fill " + flags.out + " \"a text with a [MASK]\"");
}

}  // namespace

void add_pretrain(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("pretrain", "pre-train an encoder of the BERT family on plain text");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("--train", flags->train,
                   "text files: a sentence on each line, blank lines between documents")
      ->type_name("FILE");
  verb->add_option("--valid", flags->valid,
                   "the same for validation: held-out text that decides which weights are kept")
      ->type_name("FILE");
  verb->footer(kFooter);
  add_training<tasks::PretrainTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
