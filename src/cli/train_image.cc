// fovea train image: an image classifier from labelled pictures.
#include "tasks/train_image.h"
#include "cli/train_progress.h"
#include "cli/train_settings.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    "A folder with a sub-folder of .jpg and .png files for every class, or an IDX file of pictures and one "
    "of "
    "their labels\n"
    "(MNIST's format, gzip or not).\n\n"
    "--gate se weighs channels (Hu et al. 2018), cbam channels and then places (Woo et al. 2018), sk chooses "
    "between branches\n"
    "of different reach (Li et al. 2019). `fovea explain` shows what they weigh.\n\n"
    "Started again on the same --out, training goes on from its last checkpoint. Every flag but the files "
    "may "
    "stand in a\n"
    "JSON file given by --config, with underscores for dashes; flags win over it.\n"
    "  fovea train image --train cats-and-dogs --valid held-out --gate cbam --flip --out model --minutes 20\n"
    "  fovea train image --train train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --out mnist";

struct ImageTask {
  using Models = models::ImageClassifiers;
  using Training = tasks::ImageTraining;
  static train::TrainOptions options() {
    return {.steps = 2000,
            .clip_norm = 1,
            .average = 3,
            .log_every = 50,
            .validate_every = 250,
            .save_every = 250};
  }
};

void run(const TrainLine& line, const TrainSettings<ImageTask>& settings) {
  const tasks::ImageFiles files{line.train, line.valid, line.out};
  const StopSignals signals;
  RunProgress<tasks::RunObserver> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_image(files, settings.training, settings.model, settings.options, line.command, progress,
                         [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(line, result.outcome, result.step,
                  result.best >= 0 ? message("best accuracy ", result.best, " %") : "",
                  "fovea classify " + line.out + " picture.png");
}

}  // namespace

void add_train_image(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("image", "an image classifier from labelled pictures");
  const auto line = std::make_shared<TrainLine>();
  verb->add_option("--train", line->train, "a folder of classes, or IDX pictures and labels")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->add_option("--valid", line->valid, "the same, held out for validation")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->footer(kFooter);
  add_training<ImageTask>(*verb, line, "image", run);
}

}  // namespace fovea::cli
