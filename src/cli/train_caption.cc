// fovea train caption: a captioner from captioned pictures.
#include "tasks/train_caption.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(Captions: Flickr's token file (name.jpg#0, a tab, the caption), two columns (name and caption, separated by a tab, or
by a comma in a file that ends in .csv), or COCO's JSON. Several files are joined.

The encoder is a MobileNet (v1) that is not trained. Its features are computed once for each picture and kept in the file
of --features; a run that is stopped during this resumes there, and several runs may share the file.

--attention soft takes the weighted sum of all places (Xu et al. 2015); hard draws one place and is trained by REINFORCE;
gumbel adds Gumbel noise to the scores, so that gradients pass. `fovea explain` shows what the model attends to at every
word.)help";

constexpr const char* kExamples =
    R"help(  fovea train caption --images images.tar --captions Flickr8k.token.txt --split Flickr_8k.trainImages.txt \
      Flickr_8k.devImages.txt --encoder mobilenet_v1_1.00_224 --out model --minutes 60)help";

class CaptionProgress : public RunProgress<tasks::CaptionObserver> {
 public:
  using RunProgress::RunProgress;
  void on_sample(const tasks::CaptionSample& sample) override {
    say("  picture      " + sample.picture);
    say("  reference    " + sample.reference);
    say("  caption      " + sample.caption);
  }
};

// The files that only captions have; --images stands for --train.
struct Files {
  std::vector<std::string> captions, split;
  std::string encoder, features;
};

void run(const TrainFlags& flags, const Files& files,
         const tasks::TrainSettings<tasks::CaptionTraining>& settings) {
  require(!files.captions.empty(), "train caption: --captions is needed; see fovea train caption --help");
  require(
      !files.encoder.empty(),
      "train caption: --encoder is needed: the weights of a MobileNet, NAME.f32 and NAME.manifest.tsv; see fovea train "
      "caption --help");
  const tasks::TrainingOutcome result =
      run_watched<CaptionProgress>(flags, settings,
                                   tasks::CaptionFiles{.images = flags.train[0],
                                                       .captions = files.captions,
                                                       .train = files.split.empty() ? "" : files.split[0],
                                                       .valid = files.split.size() > 1 ? files.split[1] : "",
                                                       .encoder = files.encoder,
                                                       .features = files.features,
                                                       .out = flags.out},
                                   tasks::train_caption);
  report_training(flags, result, result.best >= 0 ? message("BLEU-4 ", result.best) : "",
                  "fovea caption " + flags.out + " picture.jpg");
}

}  // namespace

void add_train_caption(CLI::App& train) {
  CLI::App* verb =
      train.add_subcommand("caption", "a model that describes pictures, from captioned pictures");
  const auto flags = std::make_shared<TrainFlags>();
  const auto files = std::make_shared<Files>();
  verb->add_option("--images", flags->train, "folder or uncompressed tar of pictures")
      ->expected(1)
      ->type_name("PATH");
  verb->add_option("--captions", files->captions, "file of captions; may be given several times")
      ->type_name("FILE");
  verb->add_option(
          "--split", files->split,
          "lists of picture names, one per line: those to train on and, after them, those held out for validation "
          "(default: train on every captioned picture, without validation)")
      ->expected(1, 2)
      ->type_name("TRAIN VALID");
  verb->add_option(
          "--encoder", files->encoder,
          "weights of a MobileNet: the common beginning of its .f32 and .manifest.tsv files, or their folder")
      ->type_name("PATH");
  verb->add_option(
          "--features", files->features,
          "file that keeps the encoder's features, about 200 KB a picture (default: features.records in --out)")
      ->type_name("FILE");
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::CaptionTraining>(
      *verb, flags,
      [files](const TrainFlags& line, const tasks::TrainSettings<tasks::CaptionTraining>& settings) {
        run(line, *files, settings);
      },
      "--images");
}

}  // namespace fovea::cli
