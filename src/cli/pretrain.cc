// fovea pretrain: an encoder of the BERT family from plain text.
#include "tasks/pretrain.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(Text: a sentence on each line, blank lines between documents; several files, plain or gzip. A WordPiece vocabulary is
learnt from it. The model learns to predict masked words (15 % of them: 80 % become [MASK], 10 % another token, 10 % stay)
and whether the second text of a pair follows the first, with the optimiser of the original code (Devlin et al. 2019).

The result is a folder in Hugging Face's format (BertForPreTraining): fovea fill, fovea embed and fovea train classify
--from use it, and so do their libraries. --from continues the training of such a folder on other text.)help";

constexpr const char* kExamples =
    R"help(  fovea pretrain --train text.txt --valid held-out.txt --out model --preset tiny --minutes 60
  fovea train classify --train labelled.tsv --from model --out classifier)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::PretrainTraining>& settings) {
  const tasks::PretrainFiles files{flags.train, flags.valid, flags.out};
  const tasks::PretrainOutcome result = run_watched(flags, settings, files, tasks::pretrain);
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
  add_data_flags(*verb, flags, "text files: a sentence on each line, blank lines between documents", "FILE",
                 0);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::PretrainTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
