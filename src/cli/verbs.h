// The verbs of the command line. Each is in a file of its own: it adds its subcommand, the flags, and
// what runs once the line is read. A verb reads flags and prints; the work is done in the rooms below.
//
// To add a verb: a file src/cli/<verb>.cc with add_<verb>, its declaration here, its call in main.cc.
#pragma once

#include <CLI/CLI.hpp>

namespace fovea::cli {

void add_caption(CLI::App& app);
void add_classify(CLI::App& app);
void add_convert(CLI::App& app);
void add_demo(CLI::App& app);
void add_embed(CLI::App& app);
void add_explain(CLI::App& app);
void add_fill(CLI::App& app);
void add_info(CLI::App& app);
void add_kernels(CLI::App& app);
void add_partition(CLI::App& app);
void add_pattern(CLI::App& app);
void add_bench(CLI::App& app);
void add_predict(CLI::App& app);
void add_pretrain(CLI::App& app);
void add_scene(CLI::App& app);
void add_rerank(CLI::App& app);
void add_score(CLI::App& app);
void add_train(CLI::App& app);
void add_translate(CLI::App& app);

// The verbs under `fovea train`.
void add_train_caption(CLI::App& train);
void add_train_classify(CLI::App& train);
void add_train_clip(CLI::App& train);
void add_train_glimpse(CLI::App& train);
void add_train_image(CLI::App& train);
void add_train_series(CLI::App& train);
void add_train_partition(CLI::App& train);
void add_train_translate(CLI::App& train);

}  // namespace fovea::cli
