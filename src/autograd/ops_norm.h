// Dropout and layer norm, alone and fused with the residual sum that a Transformer puts between them.
#pragma once

#include "autograd/var.h"

namespace fovea {

// Each element is dropped with probability p, the others are divided by 1 - p. The draws are a function of
// the seed and the element's place. p = 0 gives x itself.
Var dropout(const Var& x, float p, uint64_t seed);

// Over the last dimension; weight and bias are [d] or undefined.
Var layer_norm(const Var& x, const Var& weight, const Var& bias, float epsilon = 1e-5f);

// x / |x| along the last dimension; a zero row stays zero.
Var unit_rows(const Var& x);

struct NormedSum {
  Var normed;  // layer_norm(sum)
  Var sum;     // residual + dropout(x)
};

// residual + dropout(x) and its layer norm in one pass over memory. Pre-norm layers go on with both results;
// post-norm layers with `normed` alone.
NormedSum residual_dropout_norm(const Var& x, const Var& residual, const Var& weight, const Var& bias,
                                float p, uint64_t seed, float epsilon = 1e-5f);

}  // namespace fovea
