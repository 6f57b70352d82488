// Softmax and log-softmax over rows, with masks.
//
// A hidden column gets probability 0 (log-probability -inf) and whatever it holds, NaN included, reaches
// nothing. A row that sees no column is all 0 (-inf), with gradient 0.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

// Which columns a row sees. The three ways may be joined: a column is seen when all of them let it be seen.
struct RowMask {
  const int32_t* lengths = nullptr;  // row r sees the first lengths[r / rows_per_length] columns
  int64_t rows_per_length = 1;
  int64_t causal_rows = 0;  // when > 0, row r sees columns 0 .. r % causal_rows + causal_offset
  int64_t causal_offset = 0;
  const float* seen = nullptr;  // [seen_rows, columns], 0 hides; row r uses (r / seen_repeat) % seen_rows
  int64_t seen_rows = 1;
  int64_t seen_repeat = 1;

  // Columns from here on are hidden from row r.
  int64_t limit(int64_t r, int64_t columns) const {
    int64_t result = columns;
    if (lengths) result = result < lengths[r / rows_per_length] ? result : lengths[r / rows_per_length];
    if (causal_rows > 0) {
      const int64_t causal = r % causal_rows + causal_offset + 1;
      result = result < causal ? result : causal;
    }
    return result < 0 ? 0 : result;
  }
  const float* seen_row(int64_t r, int64_t columns) const {
    return seen ? seen + r / seen_repeat % seen_rows * columns : nullptr;
  }
};

struct SoftmaxKernels;
const SoftmaxKernels& softmax_kernels(Level level = current_level());

// x, y: [rows, columns]; y may be x.
struct Softmax {
  int64_t rows = 0, columns = 0;
  const float* x = nullptr;
  float* y = nullptr;
  RowMask mask = {};
};
void softmax(const Softmax& args, const SoftmaxKernels& kernels = softmax_kernels());
void log_softmax(const Softmax& args, const SoftmaxKernels& kernels = softmax_kernels());

// y is the forward result; y itself shows what was masked. dx may be dy.
struct SoftmaxBackward {
  int64_t rows = 0, columns = 0;
  const float* y = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;
};
void softmax_backward(const SoftmaxBackward& args, const SoftmaxKernels& kernels = softmax_kernels());
void log_softmax_backward(const SoftmaxBackward& args, const SoftmaxKernels& kernels = softmax_kernels());

// Bodies over rows [begin, end), on the calling thread.
struct SoftmaxKernels {
  void (*softmax)(const Softmax& args, int64_t begin, int64_t end);
  void (*log_softmax)(const Softmax& args, int64_t begin, int64_t end);
  void (*softmax_backward)(const SoftmaxBackward& args, int64_t begin, int64_t end);
  void (*log_softmax_backward)(const SoftmaxBackward& args, int64_t begin, int64_t end);
};

}  // namespace fovea::kernels
