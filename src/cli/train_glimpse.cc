// fovea train glimpse: a classifier that sees pictures in several glimpses.
#include "tasks/train_glimpse.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(--model ram chooses the location of the next glimpse and learns this by REINFORCE (Mnih et al. 2014); soft computes a
weighted sum over the glimpses of a grid instead, which is differentiable. A glimpse shows --scales windows around one
location: the first of --patch x --patch pixels, each next one twice as wide and averaged to as many pixels.

Scenes are made from the pictures, new ones in every epoch; those of validation and of `fovea classify --test` are always
the same. Ten of them are written to the folder scenes of the model, to try `fovea classify` and `fovea explain` on.)help";

constexpr const char* kExamples =
    R"help(  fovea train glimpse --train train-images.gz train-labels.gz --valid test-images.gz test-labels.gz --out model
  fovea train glimpse --train train-images.gz train-labels.gz --scene cluttered --size 60 --glimpses 8 --patch 12 \
      --scales 3 --out cluttered --minutes 60)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::GlimpseTraining>& settings) {
  const tasks::GlimpseFiles files{flags.train, flags.valid, flags.out};
  const tasks::TrainingOutcome result = run_watched(flags, settings, files, tasks::train_glimpse);
  report_training(flags, result, result.best >= 0 ? message("accuracy ", result.best, " %") : "",
                  "fovea explain " + flags.out + " " + flags.out + "/scenes/0.png --out path.png");
}

}  // namespace

void add_train_glimpse(CLI::App& train) {
  CLI::App* verb =
      train.add_subcommand("glimpse", "an image classifier that sees a picture in several glimpses");
  const auto flags = std::make_shared<TrainFlags>();
  add_data_flags(
      *verb, flags,
      "IDX files of pictures and labels (MNIST's format, plain or gzip), or a folder of classes or a tar of one, to "
      "train on",
      "PATH", 2);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::GlimpseTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
