// fovea train clip: a classifier of clips and bags of pictures.
#include "tasks/train_clip.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(A clip has some frames and one label. --train is one of:
  a folder with a sub-folder for each class, in it a sub-folder of .jpg or .png frames for each clip;
  a list file with a line for each picture: bag, tab, label, tab, picture file (relative to the list), and optionally a tab
  and 1 if that picture decides the label, else 0;
  an IDX file of pictures and one of their labels (MNIST's format, plain or gzip), from which bags or clips are made.

--pooling chooses how the features of frames become one vector; `fovea explain` shows the weight of each frame. A few clips
of the validation data are written to the folder clips of the model, to try `fovea classify` and `fovea explain` on.)help";

constexpr const char* kExamples =
    R"help(  fovea train clip --train slides.tsv --valid held-out.tsv --size 64 --pooling gated --out model
  fovea train clip --train train-images.gz train-labels.gz --valid test-images.gz test-labels.gz --clips 200 --out bags)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::ClipTraining>& settings) {
  const tasks::ClipFiles files{flags.train, flags.valid, flags.out};
  const tasks::TrainingOutcome result = run_watched(flags, settings, files, tasks::train_clip);
  const std::string pooling = settings.model.value("pooling", "gated");
  const bool shows_weights = pooling != "mean" && pooling != "max";
  const std::string clip = flags.out + " " + flags.out + "/clips/1";
  report_training(flags, result, result.best >= 0 ? message("accuracy ", result.best, " %") : "",
                  shows_weights ? "fovea explain " + clip + " --out strip.png" : "fovea classify " + clip);
}

}  // namespace

void add_train_clip(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("clip", "a classifier of clips and bags of pictures");
  const auto flags = std::make_shared<TrainFlags>();
  add_data_flags(*verb, flags, "list file, folder of clips, or IDX files of pictures and labels, to train on",
                 "PATH", 2);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::ClipTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
