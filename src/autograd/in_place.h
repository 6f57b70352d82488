// Ops that overwrite their input where nothing is recorded: for results that nobody else reads.
#pragma once

#include "autograd/ops_conv.h"

namespace fovea {

// As batch_norm(). Without the tape and outside of training the result is written over x, while x is in the
// cache.
Var batch_norm_in_place(const Var& x, const Var& weight, const Var& bias, const Tensor& running_mean,
                        const Tensor& running_var, const BatchNormOptions& options = {});

}  // namespace fovea
