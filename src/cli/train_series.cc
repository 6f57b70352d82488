// fovea train series: a model of number sequences, from a table over time or from labelled cases.
#include "tasks/train_series.h"

#include <cmath>

#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(A table (.csv, .tsv; plain or gzip) has a header and one row for each time step, oldest first: the model reads --steps-in
steps and forecasts the next --horizon steps of the --target columns. Columns are standardised by their mean and deviation
in the training part. --split cuts the --train file into training, validation and test parts, in this order; scores on
the test part are printed at the end.

A .ts file (the format of the UEA archive) has one series on each line, with one or several features and any length, and
a label (@classLabel) or a number (@targetLabel) to learn.

--patch and --channels independent make a Transformer a PatchTST. --self-attention takes any attention spec, such as
"scaled_dot / causal & window(24,0) / soft".)help";

constexpr const char* kExamples =
    R"help(  fovea train series --train ETTh1.csv --split 8640/2880/2880 --steps-in 336 --horizon 96 --out model
  fovea train series --train JapaneseVowels_TRAIN.ts --valid JapaneseVowels_TEST.ts --out vowels)help";

std::string score_text(const tasks::SeriesOutcome& result) {
  if (std::isnan(result.best)) return "";
  switch (result.goal) {
    case tasks::SeriesGoal::forecast:
      return message("validation MSE ", result.best, " of standardised values");
    case tasks::SeriesGoal::classify:
      return message("accuracy ", result.best, " %");
    case tasks::SeriesGoal::regress:
      break;
  }
  return message("RMSE ", result.best);
}

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::SeriesTraining>& settings) {
  const tasks::SeriesFiles files{flags.train[0], flags.valid.empty() ? "" : flags.valid[0], flags.out};
  const tasks::SeriesOutcome result = run_watched(flags, settings, files, tasks::train_series);
  const bool forecast = result.goal == tasks::SeriesGoal::forecast;
  if (!result.test.empty()) std::cout << "test part: " << result.test << '\n';
  report_training(flags, result, score_text(result),
                  "fovea predict " + flags.out + (forecast ? " < rows.csv" : " < cases.ts"));
}

}  // namespace

void add_train_series(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("series", "a forecaster or classifier of number sequences");
  const auto flags = std::make_shared<TrainFlags>();
  add_data_flags(*verb, flags, "table (.csv, .tsv) or cases (.ts) to train on", "FILE", 1);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::SeriesTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
