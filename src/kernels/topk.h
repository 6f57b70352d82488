// The best few of a row of logits and the logarithm of the sum of their exponentials: what a decoder needs of
// an output layer, without writing log-probabilities.
//
// Whoever makes the logits summarises them a block of columns at a time. The wanted-th largest of the blocks'
// maxima bounds what can be chosen, so that the choice looks into a few blocks alone.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

inline constexpr int64_t kTopBlock = 128;
constexpr int64_t top_blocks(int64_t count) {
  return (count + kTopBlock - 1) / kTopBlock;
}

struct TopK {
  int64_t count = 0;                     // at least 1
  const float* x = nullptr;              // [count]
  const float* block_largest = nullptr;  // [top_blocks(count)], by summarise()
  const float* block_sums = nullptr;
  int64_t wanted = 1;       // at least 1; more than there are gives all there are
  int32_t skipped = -1;     // a column that is not chosen, though it counts in the sum
  float* values = nullptr;  // [wanted], largest first; of equal ones the first column
  int32_t* columns = nullptr;
};

struct TopKResult {
  int64_t found = 0;
  float largest = 0;  // of all columns; lse = largest + log(sum)
  float sum = 0;      // of exp(x - largest). NaN when the row holds a NaN or +inf, or nothing but -inf
};

// On the calling thread.
struct TopKKernels {
  // Of every block of x: its largest, and the sum of exp(x - largest); 0 where all are -inf.
  void (*summarise)(int64_t count, const float* x, float* largest, float* sums);
  TopKResult (*top_k)(const TopK& args);
};

const TopKKernels& top_k_kernels(Level level = current_level());

}  // namespace fovea::kernels
