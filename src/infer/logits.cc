#include "infer/logits.h"

#include "base/error.h"
#include "kernels/vector/topk.h"

namespace fovea {

Logits::Logits(int64_t rows, int64_t vocabulary)
    : values({rows, vocabulary}),
      largest({rows, kernels::top_blocks(vocabulary)}),
      sums({rows, kernels::top_blocks(vocabulary)}) {}

Logits::Logits(const Tensor& all) : Logits(all.size(0), all.size(1)) {
  values = all.contiguous();
  summarise(0, all.size(0), 0, all.size(1));
}

void Logits::summarise(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) const {
  FOVEA_ASSERT(column_begin % kernels::kTopBlock == 0);
  const int64_t vocabulary = values.size(1), blocks = largest.size(1),
                block = column_begin / kernels::kTopBlock;
  for (int64_t row = row_begin; row < row_end; ++row)
    kernels::top_k_kernels().summarise(
        column_end - column_begin, values.data() + row * vocabulary + column_begin,
        largest.data() + row * blocks + block, sums.data() + row * blocks + block);
}

void fail_damaged_logits() {
  fail("decoding: the model gives NaN or infinity; its weights are damaged");
}

}  // namespace fovea
