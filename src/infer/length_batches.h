// Many texts in batches of similar length, batches spread over threads.
//
// A batch on one thread wastes nothing on handing out small pieces of work. The caller must have results
// that do not depend on a text's batch: then how many threads there are changes the speed alone.
#pragma once

#include <cstdint>
#include <span>

#include "base/parallel.h"

namespace fovea {

struct BatchLimits {
  int64_t sentences = 0;  // of a batch at most; 0: no limit
  int64_t tokens = 0;     // of a batch at most, a longer sentence alone; 0: no limit
};

// Calls run(members) for every batch, on up to num_threads() threads; members are places in `lengths`, the
// longest text first. One batch alone runs on the calling thread, so that its own products may use them all.
void for_length_batches(std::span<const int64_t> lengths, const BatchLimits& limits,
                        FunctionRef<void(std::span<const size_t> members)> run);

}  // namespace fovea
