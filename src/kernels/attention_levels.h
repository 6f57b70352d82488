// The parts of one level's attention table, each in a X.simd.cc of its own.
#pragma once

#include "kernels/attention.h"

namespace fovea::kernels::FOVEA_LEVEL {

void attention_forward(const AttentionForward& a);
void attention_backward(const AttentionBackward& g);

}  // namespace fovea::kernels::FOVEA_LEVEL
