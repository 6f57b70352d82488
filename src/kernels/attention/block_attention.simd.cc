#include "kernels/attention/block_attention_levels.h"

namespace fovea::kernels::FOVEA_LEVEL {

extern const AttentionKernels attention_table;
const AttentionKernels attention_table{attention_forward, attention_backward};

}  // namespace fovea::kernels::FOVEA_LEVEL
