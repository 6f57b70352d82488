// Batch norm behind a convolution.
#pragma once

#include "nn/conv.h"

namespace fovea::nn {

// norm(x, context, activation) for an x that nobody else reads, such as a convolution's result: a model in
// use writes over it.
Var norm_in_place(const BatchNorm2d& norm, const Var& x, const Context& context,
                  NormActivation activation = NormActivation::none);

}  // namespace fovea::nn
