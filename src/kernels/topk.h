// The best few of a row of logits and the logarithm of the sum of their exponentials: what a decoder needs of
// an output layer, without writing log-probabilities.
//
// A first visit takes the maximum of every block of columns. The wanted-th largest of those bounds what can
// be chosen, so that the choice looks into a few blocks alone; the sum of exponentials is the second visit.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

inline constexpr int64_t kTopBlock = 128;

struct TopK {
  int64_t count = 0;         // at least 1
  const float* x = nullptr;  // [count]
  int64_t wanted = 1;        // at least 1; more than there are gives all there are
  int32_t skipped = -1;      // a column that is not chosen, though it counts in the sum
  float* scratch = nullptr;  // [count / kTopBlock + 1]
  float* values = nullptr;   // [wanted], largest first; of equal ones the first column
  int32_t* columns = nullptr;
};

struct TopKResult {
  int64_t found = 0;
  float largest = 0;  // of all columns; lse = largest + log(sum)
  float sum = 0;      // of exp(x - largest). NaN when the row holds a NaN or +inf, or nothing but -inf
};

struct TopKKernels {
  TopKResult (*top_k)(const TopK& args);  // on the calling thread
};

const TopKKernels& top_k_kernels(Level level = current_level());

}  // namespace fovea::kernels
