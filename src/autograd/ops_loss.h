// Losses.
#pragma once

#include <span>

#include "autograd/var.h"

namespace fovea {

enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  float smoothing = 0;     // share of the target spread evenly over all classes
  int32_t ignored = -100;  // rows with this target count for nothing, in the mean neither
  Reduction reduction = Reduction::mean;
  // The gradient may be written over the logits' memory: the caller promises that nothing reads them
  // afterwards.
  bool overwrite_logits = false;
};

// logits: [..., classes]; targets: one class per row. Returns a scalar, or [rows] for Reduction::none.
// The mean over no row at all is 0.
Var cross_entropy(const Var& logits, std::span<const int32_t> targets,
                  const CrossEntropyOptions& options = {});

}  // namespace fovea
