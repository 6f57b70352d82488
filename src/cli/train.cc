// fovea train: from one's own files to a model folder.
#include "cli/verbs.h"

namespace fovea::cli {

void add_train(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "train a model on your own files");
  train->require_subcommand(1);
  add_train_translate(*train);
  add_train_classify(*train);
  add_train_image(*train);
  add_train_series(*train);
  add_train_partition(*train);
  add_train_glimpse(*train);
  add_train_clip(*train);
  add_train_caption(*train);
}

}  // namespace fovea::cli
