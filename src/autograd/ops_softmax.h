// Softmax over the last dimension, with masks.
#pragma once

#include <span>

#include "autograd/var.h"

namespace fovea {

// What a row sees; a column is seen when all that is given lets it be seen. Hidden columns get probability 0
// whatever they hold; a row that sees nothing is all 0 (all -inf for log_softmax), with gradient 0.
struct SoftmaxMask {
  // One per slice of the leading dimensions: [B] for x: [B, ..., n]; only the first lengths[b] columns are
  // seen.
  std::span<const int32_t> lengths = {};
  // Row i of the second last dimension sees columns 0 .. i + causal_offset.
  bool causal = false;
  int64_t causal_offset = 0;
  // 0 hides, anything else lets see; broadcasts to the shape of x.
  Tensor seen = {};
};

Var softmax(const Var& x, const SoftmaxMask& mask = {});
Var log_softmax(const Var& x, const SoftmaxMask& mask = {});

}  // namespace fovea
