// Ops that overwrite an input or an intermediate result that nobody else reads: they take and keep less memory.
#pragma once

#include "autograd/ops_conv.h"
#include "autograd/ops_linear.h"
#include "autograd/ops_norm.h"

namespace fovea {

// As batch_norm(). Without the tape and outside of training the result is written over x, while x is in the
// cache.
Var batch_norm_in_place(const Var& x, const Var& weight, const Var& bias, const Tensor& running_mean,
                        const Tensor& running_var, const BatchNormOptions& options = {});

// dropout(linear(x, weight, bias, activation), p, seed), where gradients keep one of the two results.
Var linear_dropout(const Var& x, const Var& weight, const Var& bias, Activation activation, float p,
                   uint64_t seed);

// As residual_dropout_norm(), with the sum written over x. x must be the result of an op whose gradient does not read it,
// such as linear() without an activation, and its value must not be read afterwards.
NormedSum residual_dropout_norm_in_place(const Var& x, const Var& residual, const Var& weight,
                                         const Var& bias, float p, uint64_t seed, float epsilon = 1e-5f);
// The same for a caller that does not read the sum: without the tape there is none, and the norm is written over x.
Var residual_dropout_norm_alone(const Var& x, const Var& residual, const Var& weight, const Var& bias,
                                float p, uint64_t seed, float epsilon = 1e-5f);

}  // namespace fovea
