// fovea bench peak: multiply-adds and memory traffic a second, the limits of every other figure.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/parallel.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "kernels/peak.h"

namespace fovea::cli {
namespace {

void print_peak(bool json) {
  const std::string level(level_name(current_level()));
  const double gflops = kernels::measure_fma_gflops();
  const kernels::Bandwidth bandwidth = kernels::measure_bandwidth();
  if (json) {
    std::cout << nlohmann::ordered_json{{"level", level},
                                        {"threads", num_threads()},
                                        {"peak_gflops", gflops},
                                        {"read_gbps", bandwidth.read},
                                        {"copy_gbps", bandwidth.copy},
                                        {"triad_gbps", bandwidth.triad}}
              << '\n';
    return;
  }
  std::printf("level      %s, %d threads\n", level.c_str(), num_threads());
  std::printf("FMA peak   %.1f GFLOP/s\n", gflops);
  std::printf("memory     read %.1f, copy %.1f, triad %.1f GB/s\n", bandwidth.read, bandwidth.copy,
              bandwidth.triad);
}

}  // namespace

void add_bench_peak(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("peak", "measure FMA peak and memory bandwidth");
  auto json = std::make_shared<bool>(false);
  add_threads(*verb);
  add_json(*verb, *json);
  verb->callback([json] { print_peak(*json); });
}

}  // namespace fovea::cli
