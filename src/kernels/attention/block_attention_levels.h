// The parts of one level's attention table, each in a X.simd.cc of its own.
#pragma once

#include "kernels/attention/block_attention.h"

namespace fovea::kernels::FOVEA_LEVEL {

void attention_forward(const AttentionForward& a);
// Whether attention_decode, the forward pass for few queries on many keys, takes this call.
bool attention_few_queries(const AttentionForward& a);
void attention_decode(const AttentionForward& a);
void attention_backward(const AttentionBackward& g);

}  // namespace fovea::kernels::FOVEA_LEVEL
