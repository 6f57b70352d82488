#include "kernels/attention/block_attention.h"

#include "base/rng.h"
#include "kernels/attention/dropout.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(AttentionKernels, attention_table, attention_kernels)

namespace fovea::kernels {

DropoutRow dropout_row(uint64_t seed, int64_t b, int64_t h, int64_t i) {
  const auto bits =
      philox(seed, static_cast<uint64_t>(i), static_cast<uint64_t>(b) << 32 | static_cast<uint32_t>(h));
  return {bits[0], bits[1]};
}

}  // namespace fovea::kernels
