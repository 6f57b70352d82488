// Timing of one piece of work, as every benchmark does it.
#pragma once

#include <cstdint>
#include <string>

#include "base/parallel.h"
#include "io/json.h"

namespace fovea::bench {

struct Measured {
  double seconds = 0;      // the best run
  int runs = 0;            // how many there were
  int64_t peak_bytes = 0;  // growth of this process's resident memory at its highest, since MemoryWatch began
  double peak_gflops = 0;  // the machine's, where it was measured too
};

// Watches resident memory from its construction on. peak_bytes() is 0 where the system does not tell.
class MemoryWatch {
 public:
  MemoryWatch();
  int64_t peak_bytes() const;

 private:
  int64_t start_ = 0;
};

// Runs `step` twice to warm up, then until `budget` seconds are spent and at least five times. A step of more than two
// seconds runs three times in all, as in bench/timing.py: the first one, on cold memory, must not decide.
Measured measure(FunctionRef<void()> step, double budget = 0.5);
// The same between two measurements of the FMA peak: the clock may change under the work, so the better one
// counts.
Measured measure_beside_peak(FunctionRef<void()> step, double budget);

// A number with `digits` after the point.
std::string decimals(double value, int digits);
// Filled up with spaces behind, or before, to a width.
std::string padded(std::string text, size_t width);
std::string padded_left(const std::string& text, size_t width);

// What every benchmark says of its work, `flops` of it a run: seconds, runs, flops, gflops, peak_gflops,
// fraction, peak_bytes.
Json work_json(const Measured& measured, double flops);
// ", 51.3 GFLOP/s, 0.50 of the FMA peak 103.0; 12 MiB"; without the rate where flops is 0.
std::string work_text(const Measured& measured, double flops);

}  // namespace fovea::bench
