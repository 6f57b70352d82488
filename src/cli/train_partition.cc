// fovea train partition: a ship detector whose two tasks are kept apart.
#include "tasks/train_partition.h"

#include <tuple>

#include "cli/signals.h"
#include "cli/train_progress.h"
#include "cli/train_verb.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(A deep branch of the network finds the ends of ships (the coarse map: bow or stern, body, sea, land); a shallow branch
tells bow from stern (the fine map). The coarse map gates the loss of the fine one: where it sees no end of a ship, the fine
branch gets no gradient (after Lin, Shi and Zou 2017). With --gate schedule the gate comes from the labels at first and moves
to the prediction. --branches ungated and single are for comparison.

Scenes: --train scenes draws harbours with ships (--scenes of them; --seed names the series). Or a folder of HRSC2016's form:
Annotations/*.xml and AllImages/*.bmp (or .png, .jpg); its annotations do not tell land from sea.

Run again with the same --out, training continues from the last checkpoint. Ctrl-C, SIGTERM and SIGHUP save and stop, with
exit status 130, 143 and 129. Options can also stand in the JSON file of --config, with underscores for dashes; flags
take precedence.

  fovea train partition --train scenes --valid scenes --out ships --minutes 20
  fovea train partition --train HRSC2016/Train --valid HRSC2016/Test --size 512 --out hrsc)help";

void run(const TrainFlags& flags, const tasks::TrainSettings<tasks::PartitionTraining>& settings) {
  const tasks::PartitionFiles files{flags.train[0], flags.valid.empty() ? "" : flags.valid[0], flags.out};
  for (const auto& [name, flag, path] :
       {std::tuple{"scenes", "--train", files.train}, std::tuple{"valid_scenes", "--valid", files.valid}})
    require(!flags.values.contains(name) || path == tasks::kDrawnScenes, flag_name(name), " applies to ",
            flag, " scenes only");
  const StopSignals signals;
  RunProgress<tasks::RunObserver> progress(std::cerr, terminal_columns());
  const tasks::TrainingOutcome result =
      tasks::train_partition(files, settings.training, settings.model, settings.options, flags.command,
                             progress, [] { return StopSignals::received() != 0; });
  progress.end();
  report_training(flags, result, result.best >= 0 ? message("F1 ", result.best, " %") : "",
                  "fovea partition " + flags.out + " picture.png");
}

}  // namespace

void add_train_partition(CLI::App& train) {
  CLI::App* verb =
      train.add_subcommand("partition", "a detector of ships, their bows and sterns, from scenes");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("--train", flags->train, "scenes (drawn by the program), or a folder of HRSC2016's form")
      ->expected(1)
      ->type_name("PATH");
  verb->add_option("--valid", flags->valid,
                   "the same for validation: held-out data that decides which weights are kept")
      ->expected(1)
      ->type_name("PATH");
  verb->footer(kFooter);
  add_training<tasks::PartitionTraining>(*verb, flags, run);
}

}  // namespace fovea::cli
