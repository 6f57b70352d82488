// fovea train partition: a ship detector whose two tasks are kept apart.
#include "tasks/train_partition.h"

#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kAbout =
    R"help(A deep branch of the network finds the ends of ships (the coarse map: bow or stern, body, sea, land); a shallow branch
distinguishes bow and stern (the fine map). The coarse map gates the loss of the fine one: where there is no end of a
ship, the fine branch gets no gradient (after Lin, Shi and Zou 2017). With --gate schedule the gate comes from the labels
at first and later from the prediction. --branches ungated and single are for comparison.

Scenes: --train scenes draws harbours with ships (--scenes of them; --seed chooses which). Or a folder in the form of
HRSC2016: Annotations/*.xml and AllImages/*.bmp (or .png, .jpg); its annotations do not distinguish land and sea.)help";

constexpr const char* kExamples =
    R"help(  fovea train partition --train scenes --valid scenes --out ships --minutes 20
  fovea train partition --train HRSC2016/Train --valid HRSC2016/Test --size 512 --out hrsc)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::PartitionTraining>& settings) {
  const tasks::PartitionFiles files{flags.train[0], flags.valid.empty() ? "" : flags.valid[0], flags.out};
  const tasks::TrainingOutcome result = run_watched(flags, settings, files, tasks::train_partition);
  report_training(flags, result, result.best >= 0 ? message("F1 ", result.best, " %") : "",
                  "fovea partition " + flags.out + " picture.png");
}

}  // namespace

void add_train_partition(CLI::App& train) {
  CLI::App* verb =
      train.add_subcommand("partition", "a detector of ships, their bows and sterns, from scenes");
  const auto flags = std::make_shared<TrainFlags>();
  add_data_flags(*verb, flags, "scenes (drawn by the program), or a folder in the form of HRSC2016", "PATH",
                 1);
  verb->footer(training_help(kAbout, kExamples));
  add_training<tasks::PartitionTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
