#include "kernels/attention/step_attention.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/level_table.h"
#include "kernels/scratch.h"

FOVEA_LEVEL_TABLES(AttentionStepKernels, attention_step_table, attention_step_kernels)

namespace fovea::kernels {

void attention_step(const AttentionStep& step, const AttentionStepKernels& kernels) {
  int64_t longest = 1, total = 0;
  for (int64_t r = 0; r < step.rows; ++r) {
    longest = std::max<int64_t>(longest, step.count[r]);
    total += step.count[r];
  }
  // About a hundred thousand multiply-adds make a chunk worth handing out.
  const int64_t work =
      std::max<int64_t>(1, 2 * total * step.heads * step.d / std::max<int64_t>(1, step.rows));
  int64_t grain = std::max<int64_t>(1, (int64_t{1} << 17) / work);
  // Rows that share keys are seldom parted.
  constexpr int64_t kUnit = 2 * kStepRows;
  if (grain > kStepRows / 2) grain = (grain + kUnit - 1) / kUnit * kUnit;
  parallel_for(step.rows, grain, [&](int64_t begin, int64_t end) {
    const int64_t row = longest + kStepScratch;
    kernels.rows(step, begin, end, scratch_floats(kAttentionTileSlot, kStepRows * row), row);
  });
}

}  // namespace fovea::kernels
