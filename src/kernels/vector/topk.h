// The best few of a row of logits and the logarithm of the sum of their exponentials: what a decoder needs of
// an output layer, without writing log-probabilities.
//
// Whoever makes the logits summarises them a block of columns at a time. The k-th largest of the blocks'
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

// A row known but for an error: its element j is within length * errors[j] + error * norms[j] + slack of
// x[j].
struct Uncertain {
  int64_t count = 0;
  const float* x = nullptr;
  const float* errors = nullptr;
  const float* norms = nullptr;
  float length = 0, error = 0, slack = 0;
  int32_t skipped = -1;        // a column that does not count
  int32_t* columns = nullptr;  // [count]
};

// On the calling thread.
struct TopKKernels {
  // Of every block of x: its largest, and the sum of exp(x - largest); 0 where all are -inf.
  void (*summarise)(int64_t count, const float* x, float* largest, float* sums);
  TopKResult (*top_k)(const TopK& args);
  // Writes the columns that may hold the largest element, in rising order, and says how many; none where x
  // holds a NaN or infinity.
  int64_t (*candidates)(const Uncertain& row);
};

const TopKKernels& top_k_kernels(Level level = current_level());

}  // namespace fovea::kernels
