// fovea bench: what this machine gives, and how much of it Fovea takes.
#include "cli/verbs.h"

namespace fovea::cli {

void add_bench(CLI::App& app) {
  CLI::App* bench =
      app.add_subcommand("bench", "measure what this machine gives and how much of it Fovea takes");
  bench->require_subcommand(1);
  add_bench_attention(*bench);
  add_bench_ops(*bench);
  add_bench_peak(*bench);
  add_bench_train(*bench);
  add_bench_translate(*bench);
}

}  // namespace fovea::cli
