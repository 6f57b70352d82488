// Multiply-adds and memory traffic a second: the limits of every other figure.
#include "base/cpu.h"
#include "base/parallel.h"
#include "bench/benchmarks.h"
#include "bench/measure.h"
#include "kernels/peak.h"

namespace fovea::bench {

Row bench_peak() {
  const std::string level(level_name(current_level()));
  const double gflops = kernels::measure_fma_gflops();
  const kernels::Bandwidth bandwidth = kernels::measure_bandwidth();
  return {Json{{"level", level},
               {"threads", num_threads()},
               {"peak_gflops", gflops},
               {"read_gbps", bandwidth.read},
               {"copy_gbps", bandwidth.copy},
               {"triad_gbps", bandwidth.triad}},
          message("level      ", level, ", ", num_threads(), " threads\nFMA peak   ", decimals(gflops, 1),
                  " GFLOP/s\nmemory     read ", decimals(bandwidth.read, 1), ", copy ",
                  decimals(bandwidth.copy, 1), ", triad ", decimals(bandwidth.triad, 1), " GB/s\n")};
}

}  // namespace fovea::bench
