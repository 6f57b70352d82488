// fovea train translate: a translator from parallel text.
#include "tasks/train_translate.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(Text: two parallel files, or one tab-separated file, plain or gzip.)help";

constexpr const char* kExamples =
    R"help(  fovea train translate --train train.en train.de --valid valid.en valid.de --out model --minutes 30)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::TranslateTraining>& settings) {
  const tasks::TranslateFiles files{flags.train[0], flags.train.size() > 1 ? flags.train[1] : "",
                                    flags.valid.empty() ? "" : flags.valid[0],
                                    flags.valid.size() > 1 ? flags.valid[1] : "", flags.out};
  const tasks::TrainingOutcome result =
      run_watched<TrainProgress<>>(flags, settings, files, tasks::train_translate);
  report_training(flags, result, result.best >= 0 ? message("BLEU ", result.best) : "",
                  "fovea translate " + flags.out + " < source.txt");
}

}  // namespace

void add_train_translate(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("translate", "a translator from parallel text");
  const auto flags = std::make_shared<TrainFlags>();
  add_data_flags(*verb, flags, "source and target file to train on, or one tab-separated file", "FILE FILE",
                 2);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::TranslateTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
