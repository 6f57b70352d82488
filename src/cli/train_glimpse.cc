// fovea train glimpse: a classifier that looks at pictures glimpse by glimpse.
#include "tasks/train_glimpse.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/train_vision.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(--model ram chooses where to look next and learns it by REINFORCE (Mnih et al. 2014); soft weighs the glimpses of a
grid instead, which is differentiable. A glimpse shows --scales windows around one location: the first of --patch x --patch
pixels, each next one twice as wide and averaged to as many pixels.

Scenes are made of the pictures and drawn anew in every epoch; those of validation, and of `fovea classify --test`, are
always the same. Ten of them are left in the folder scenes of the model, to try `fovea classify` and `fovea explain` on.

Run again with the same --out, training continues from the last checkpoint. Ctrl-C, SIGTERM and SIGHUP save and stop, with
exit status 130, 143 and 129. Options can also stand in the JSON file of --config, with underscores for dashes; flags
take precedence.

  fovea train glimpse --train train-images.gz train-labels.gz --valid test-images.gz test-labels.gz --out model
  fovea train glimpse --train train-images.gz train-labels.gz --scene cluttered --size 60 --glimpses 8 --patch 12 \
      --scales 3 --out cluttered --minutes 60)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::GlimpseTraining>& settings) {
  const tasks::GlimpseFiles files{flags.train, flags.valid, flags.out};
  const StopSignals signals;
  RunProgress<tasks::RunObserver> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_glimpse(files, settings.training, settings.model, settings.options, flags.command,
                           progress, [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(flags, result, result.best >= 0 ? message("accuracy ", result.best, " %") : "",
                  "fovea explain " + flags.out + " " + flags.out + "/scenes/0.png --out path.png");
}

}  // namespace

void add_train_glimpse(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("glimpse", "an image classifier that looks glimpse by glimpse");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option(
          "--train", flags->train,
          "IDX files of pictures and labels (MNIST's format, plain or gzip), or a folder of classes, to train on")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->add_option("--valid", flags->valid,
                   "the same for validation: held-out data that decides which weights are kept")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->footer(kFooter);
  add_training<tasks::GlimpseTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
