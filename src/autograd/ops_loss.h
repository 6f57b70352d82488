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

// The mean squared error of numbers [rows, width] against as many targets. Returns a scalar, or [rows] (each the
// mean of its width) for Reduction::none; a sum is over rows of such means. The mean over no row at all is 0.
Var squared_error(const Var& x, std::span<const float> targets, Reduction reduction = Reduction::mean);

// Of logits [rows, labels], each on its own: -t log p - (1 - t) log(1 - p), p = 1 / (1 + exp(-x)), against as many
// targets in [0, 1]. Reduced as squared_error().
Var binary_cross_entropy(const Var& logits, std::span<const float> targets,
                         Reduction reduction = Reduction::mean);

}  // namespace fovea
