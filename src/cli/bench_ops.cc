// fovea bench ops: forward and backward of the ops that training spends its time in, held against the
// machine's limits.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "base/fields.h"
#include "cli/flags.h"
#include "cli/measure.h"
#include "cli/op_cases.h"
#include "cli/verbs.h"
#include "kernels/peak.h"
#include "tensor/allocator.h"

namespace fovea::cli {
namespace {

struct Options {
  std::string filter;
  double seconds = 0.5;
  bool json = false;
  bool limits = true;
};

// What the machine gives; zero when not measured.
struct Limits {
  double gflops = 0, gbps = 0;
  // The time no program can beat: its multiply-adds at the FMA peak or its bytes at full bandwidth.
  double least_seconds(const OpCase& op) const { return std::max(op.flops / gflops, op.bytes / gbps) * 1e-9; }
};

Limits measure_limits() {
  const double gflops = kernels::measure_fma_gflops();
  const kernels::Bandwidth bandwidth = kernels::measure_bandwidth();
  return {gflops, std::max({bandwidth.read, bandwidth.copy, bandwidth.triad})};
}

std::vector<const OpCase*> chosen_cases(const std::string& filter) {
  std::vector<const OpCase*> chosen;
  std::vector<std::string_view> names;
  for (const OpCase& op : op_cases()) {
    names.push_back(op.name);
    if (op.name.find(filter) != std::string::npos) chosen.push_back(&op);
  }
  require(!chosen.empty(), "--filter: no op is named like '", filter, "'", name_hint(filter, names));
  return chosen;
}

Measured measure_case(const OpCase& op, double seconds) {
  trim_memory();
  const MemoryWatch memory;
  const auto step = op.make();
  Measured result = measure(step, seconds);
  result.peak_bytes = memory.peak_bytes();
  return result;
}

void print_row(const OpCase& op, const Measured& result, const Limits& limits, bool json) {
  const bool limited = limits.gflops > 0;
  const double fraction = limited ? limits.least_seconds(op) / result.seconds : 0;
  if (json) {
    nlohmann::ordered_json row{{"op", op.name},
                               {"shape", op.shape},
                               {"threads", num_threads()},
                               {"seconds", result.seconds},
                               {"runs", result.runs},
                               {"flops", op.flops},
                               {"bytes", op.bytes},
                               {"peak_bytes", result.peak_bytes}};
    if (limited) {
      row["peak_gflops"] = limits.gflops;
      row["peak_gbps"] = limits.gbps;
      row["fraction"] = fraction;
    }
    std::cout << row << std::endl;
    return;
  }
  std::printf("%-24s %-36s %9.3f ms", op.name.c_str(), op.shape.c_str(), result.seconds * 1e3);
  if (limited)
    std::printf("  %4.2f of the %s limit", fraction,
                op.flops / limits.gflops > op.bytes / limits.gbps ? "FMA" : "memory");
  std::printf("  %7.1f MiB\n", static_cast<double>(result.peak_bytes) / (1 << 20));
  std::fflush(stdout);
}

void run(const Options& options) {
  const auto chosen = chosen_cases(options.filter);
  const Limits limits = options.limits ? measure_limits() : Limits{};
  if (!options.json && options.limits)
    std::printf("%s, %d threads: FMA peak %.1f GFLOP/s, memory %.1f GB/s\n",
                std::string(level_name(current_level())).c_str(), num_threads(), limits.gflops, limits.gbps);
  for (const OpCase* op : chosen) print_row(*op, measure_case(*op, options.seconds), limits, options.json);
}

}  // namespace

void add_bench_ops(CLI::App& bench) {
  CLI::App* verb =
      bench.add_subcommand("ops", "measure forward and backward of the ops that training is made of");
  auto options = std::make_shared<Options>();
  verb->add_option("--filter", options->filter, "only ops with this in their name")->type_name("NAME");
  verb->add_option("--seconds", options->seconds, "time to spend on each op")
      ->type_name("S")
      ->capture_default_str();
  verb->add_flag("!--no-limits", options->limits, "do not measure the machine's limits first");
  add_threads(*verb);
  verb->add_flag("--json", options->json, "print one line of JSON for each op");
  verb->callback([options] { run(*options); });
}

}  // namespace fovea::cli
