// The output layer and its loss as one op: logits of a whole batch are never in memory at once.
#pragma once

#include <span>

#include "autograd/var.h"

namespace fovea {

struct OutputLossOptions {
  float smoothing = 0;     // label smoothing, PyTorch's definition
  int32_t ignored = -100;  // rows with this target count for nothing
};

struct OutputLoss {
  Var loss;                            // mean over the rows that count, smoothed: what training minimises
  double negative_log_likelihood = 0;  // sum over the rows that count, not smoothed: for perplexity
  int64_t count = 0;                   // rows that count
};

// x: [rows, in], weight: [classes, in], bias: [classes] or undefined, targets: [rows].
// The same numbers as cross_entropy(linear(x, weight, bias), targets). Gradients are made in the forward
// pass, a slab of rows at a time, while the slab's logits are still in the cache.
OutputLoss linear_cross_entropy(const Var& x, const Var& weight, const Var& bias,
                                std::span<const int32_t> targets, const OutputLossOptions& options = {});

}  // namespace fovea
