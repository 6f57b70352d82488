// Timing of one piece of work, as every `fovea bench` verb does it.
#pragma once

#include <cstdint>

#include "base/parallel.h"

namespace fovea::cli {

struct Measured {
  double seconds = 0;      // the best run
  int runs = 0;            // how many there were
  int64_t peak_bytes = 0;  // growth of this process's resident memory at its highest, since MemoryWatch began
};

// Watches resident memory from its construction on. peak_bytes() is 0 where the system does not tell.
class MemoryWatch {
 public:
  MemoryWatch();
  int64_t peak_bytes() const;

 private:
  int64_t start_ = 0;
};

// Runs `step` twice to warm up, then until `budget` seconds are spent and at least five times.
Measured measure(FunctionRef<void()> step, double budget = 0.5);

}  // namespace fovea::cli
