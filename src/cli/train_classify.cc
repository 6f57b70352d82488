// fovea train classify: a text classifier from labelled texts.
#include "tasks/train_classify.h"

#include <cmath>

#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(Files: tab-separated, .csv, or lines that begin with their label (with or without fastText's __label__), plain or
gzip. Columns are chosen by their names in a header row (label, class, sentiment...; text, sentence, review...),
else by their content: labels have few different values, texts are long. The choice is printed; --label-column and
--text-column override it.

--task regression predicts numbers (mean squared error; scored by Pearson's and Spearman's correlation), --task
multi_label any number of labels for each text, in one column with --label-separator between them (binary cross entropy;
micro and macro F1). --pairs reads two texts from each row: a Transformer or a BERT encoder reads both at once, lstm and
han read them separately and compare the two vectors.)help";

constexpr const char* kExamples =
    R"help(  fovea train classify --train train.tsv --valid dev.tsv --out model --minutes 10
  fovea train classify --pairs --task regression --train sts.csv --valid dev.csv --out model
  fovea train classify --from all-MiniLM-L6-v2 --train train.tsv --valid dev.tsv --out model
  fovea train classify --model transformer --self-attention "scaled_dot / window(64,64)|global(0)" --max-length 4096 ...)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::ClassifyTraining>& settings) {
  const tasks::ClassifyFiles files{flags.train[0], flags.valid.empty() ? "" : flags.valid[0], flags.out};
  const tasks::TrainingOutcome result = run_watched(flags, settings, files, tasks::train_classify);
  const tasks::ScoreName score = tasks::score_name_of(tasks::label_form(settings.training));
  const bool pairs = settings.training.pairs || !settings.training.pair_column.empty();
  const std::string unit = *score.unit == '\0' ? "" : message(" ", score.unit);
  report_training(flags, result, !std::isnan(result.best) ? message(score.name, " ", result.best, unit) : "",
                  "fovea classify " + flags.out + (pairs ? " < pairs.tsv" : " < texts.txt"));
}

}  // namespace

void add_train_classify(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("classify", "a text classifier from labelled texts");
  const auto flags = std::make_shared<TrainFlags>();
  add_data_flags(*verb, flags, "file of labelled texts to train on", "FILE", 1);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::ClassifyTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
