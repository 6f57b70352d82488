// The verbs of `fovea train` that look at pictures glimpse by glimpse and at clips frame by frame.
#pragma once

#include <CLI/CLI.hpp>

namespace fovea::cli {

void add_train_glimpse(CLI::App& train);
void add_train_clip(CLI::App& train);

}  // namespace fovea::cli
