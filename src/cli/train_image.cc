// fovea train image: an image classifier from labelled pictures.
#include "tasks/train_image.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(Pictures: a folder with one sub-folder of .jpg and .png files per class, an uncompressed tar of such folders, or an
IDX file of pictures and one of their labels (MNIST's format, plain or gzip).

--gate se weights channels (Hu et al. 2018), cbam weights channels and then places (Woo et al. 2018), sk chooses
between branches of different kernel size (Li et al. 2019). --model vit cuts the picture into patches and reads them with
self-attention (Dosovitskiy et al. 2021). `fovea explain` shows the weights.)help";

constexpr const char* kExamples =
    R"help(  fovea train image --train cats-and-dogs --valid held-out --gate cbam --flip --out model --minutes 20
  fovea train image --model vit --train train.tar --valid test.tar --size 32 --flip --out vit --minutes 30
  fovea train image --train train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --out mnist --minutes 3)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::ImageTraining>& settings) {
  const tasks::ImageFiles files{flags.train, flags.valid, flags.out};
  const tasks::TrainingOutcome result = run_watched(flags, settings, files, tasks::train_image);
  report_training(flags, result, result.best >= 0 ? message("accuracy ", result.best, " %") : "",
                  "fovea classify " + flags.out + " picture.png");
}

}  // namespace

void add_train_image(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("image", "an image classifier from labelled pictures");
  const auto flags = std::make_shared<TrainFlags>();
  add_data_flags(*verb, flags,
                 "folder of classes, tar of such folders, or IDX files of pictures and labels, to train on",
                 "PATH", 2);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::ImageTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
