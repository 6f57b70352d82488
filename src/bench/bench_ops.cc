// Forward and backward of the ops that training spends its time in, held against the
// machine's limits.
#include <algorithm>

#include "base/cpu.h"
#include "base/error.h"
#include "base/fields.h"
#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "bench/op_cases.h"
#include "kernels/peak.h"
#include "tensor/allocator.h"

namespace fovea::bench {
namespace {

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

Row row_of(const OpCase& op, const Measured& result, const Limits& limits) {
  Row row{Json{{"op", op.name},
               {"shape", op.shape},
               {"threads", num_threads()},
               {"seconds", result.seconds},
               {"runs", result.runs},
               {"flops", op.flops},
               {"bytes", op.bytes},
               {"peak_bytes", result.peak_bytes}},
          padded(op.name, 24) + " " + padded(op.shape, 36) +
              padded_left(decimals(result.seconds * 1e3, 3), 10) + " ms"};
  if (limits.gflops > 0) {
    const double fraction = limits.least_seconds(op) / result.seconds;
    row.json["peak_gflops"] = limits.gflops;
    row.json["peak_gbps"] = limits.gbps;
    row.json["fraction"] = fraction;
    row.text += message("  ", decimals(fraction, 2), " of the ",
                        op.flops / limits.gflops > op.bytes / limits.gbps ? "FMA" : "memory", " limit");
  }
  row.text += padded_left(decimals(static_cast<double>(result.peak_bytes) / (1 << 20), 1), 9) + " MiB\n";
  return row;
}

}  // namespace

void bench_ops(const OpsOptions& options, const std::function<void(const Row&)>& on_row) {
  const auto chosen = chosen_cases(options.filter);
  const Limits limits = options.limits ? measure_limits() : Limits{};
  if (options.limits)
    on_row({Json(),
            message(level_name(current_level()), ", ", num_threads(), " threads: FMA peak ",
                    decimals(limits.gflops, 1), " GFLOP/s, memory ", decimals(limits.gbps, 1), " GB/s\n")});
  for (const OpCase* op : chosen) on_row(row_of(*op, measure_case(*op, options.seconds), limits));
}

}  // namespace fovea::bench
