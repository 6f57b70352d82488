// fovea train image: an image classifier from labelled pictures.
#include "tasks/train_image.h"
#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Pictures: a folder with one sub-folder of .jpg and .png files per class, an uncompressed tar of such folders, or an
IDX file of pictures and one of their labels (MNIST's format, plain or gzip).

--gate se weighs channels (Hu et al. 2018), cbam weighs channels and then positions (Woo et al. 2018), sk chooses
between branches of different kernel size (Li et al. 2019). --model vit cuts the picture into patches and reads them with
self-attention (Dosovitskiy et al. 2021). `fovea explain` shows the weights.

Run again with the same --out, training continues from the last checkpoint. Ctrl-C, SIGTERM and SIGHUP save and stop, with
exit status 130, 143 and 129. Options can also stand in the JSON file of --config, with underscores for dashes; flags
take precedence.

  fovea train image --train cats-and-dogs --valid held-out --gate cbam --flip --out model --minutes 20
  fovea train image --model vit --train train.tar --valid test.tar --size 32 --flip --out vit --minutes 30
  fovea train image --train train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --out mnist --minutes 3)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::ImageTraining>& settings) {
  const tasks::ImageFiles files{flags.train, flags.valid, flags.out};
  const StopSignals signals;
  RunProgress<tasks::RunObserver> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_image(files, settings.training, settings.model, settings.options, flags.command, progress,
                         [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(flags, result, result.best >= 0 ? message("accuracy ", result.best, " %") : "",
                  "fovea classify " + flags.out + " picture.png");
}

}  // namespace

void add_train_image(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("image", "an image classifier from labelled pictures");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("--train", flags->train,
                   "folder of classes, tar of such folders, or IDX files of pictures and labels, to train on")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->add_option("--valid", flags->valid,
                   "the same for validation: held-out data that decides which weights are kept")
      ->expected(1, 2)
      ->type_name("PATH");
  verb->footer(kFooter);
  add_training<tasks::ImageTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
