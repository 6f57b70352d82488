// What an output layer gives a decoder.
#pragma once

#include "tensor/tensor.h"

namespace fovea {

// A row of logits for each hypothesis, and what choosing from a row needs to know of every block of
// kernels::kTopBlock columns: written beside the block while it is in the cache, so that few blocks are read
// again.
struct Logits {
  Logits(int64_t rows, int64_t vocabulary);
  explicit Logits(const Tensor& all);  // [rows, vocabulary]

  // Fills the blocks of [column_begin, column_end) of some rows; the columns begin with a block.
  void summarise(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) const;

  Tensor values;         // [rows, vocabulary]
  Tensor largest, sums;  // [rows, blocks]: the largest of a block, and the sum of exp(x - largest)
};

// Throws the Error for logits that are NaN or infinite.
[[noreturn]] void fail_damaged_logits();

}  // namespace fovea
