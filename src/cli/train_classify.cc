// fovea train classify: a text classifier from labelled texts.
#include "tasks/train_classify.h"
#include "cli/train_progress.h"
#include "cli/train_settings.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "A file with tabs, a .csv file, or lines that begin with their label (fastText's __label__ or not); gzip "
    "is read as it is.\n"
    "Columns are chosen by their names in a header row (label, class, sentiment...; text, sentence, "
    "review...), else by what they\n"
    "hold: labels have few different values, texts are long. The choice is printed; --label-column and "
    "--text-column overrule it.\n\n"
    "Started again on the same --out, training goes on from its last checkpoint. Every flag but the files "
    "may "
    "stand in a\n"
    "JSON file given by --config, with underscores for dashes; flags win over it.\n"
    "  fovea train classify --train train.tsv --valid dev.tsv --out model --minutes 10\n"
    "  fovea train classify --from all-MiniLM-L6-v2 --train train.tsv --valid dev.tsv --steps 2000 --out "
    "model\n"
    "  fovea train classify --model transformer --self-attention \"scaled_dot / window(64,64)|global(0)\" "
    "--max-length 4096 ...";

struct ClassifyTask {
  using Models = models::Classifiers;
  using Training = tasks::ClassifyTraining;
  static train::TrainOptions options() {
    return {.steps = 3000,
            .clip_norm = 1,
            .average = 3,
            .log_every = 50,
            .validate_every = 250,
            .save_every = 250,
            .patience = 8};
  }
};

void run(const TrainLine& line, const TrainSettings<ClassifyTask>& settings) {
  const tasks::ClassifyFiles files{line.train[0], line.valid.empty() ? "" : line.valid[0], line.out};
  const StopSignals signals;
  RunProgress<tasks::RunObserver> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_classify(files, settings.training, settings.model, settings.options, line.command,
                            progress, [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(line, result.outcome, result.step,
                  result.best >= 0 ? message("best accuracy ", result.best, " %") : "",
                  "fovea classify " + line.out + " < texts.txt");
}

}  // namespace

void add_train_classify(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("classify", "a text classifier from labelled texts");
  const auto line = std::make_shared<TrainLine>();
  verb->add_option("--train", line->train, "labelled texts")->expected(1)->type_name("FILE");
  verb->add_option("--valid", line->valid, "the same, held out for validation")
      ->expected(1)
      ->type_name("FILE");
  verb->footer(kFooter);
  add_training<ClassifyTask>(*verb, line, "classify", run);
}

}  // namespace fovea::cli
