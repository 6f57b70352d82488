// Convolutions with several channels to a group, through register tiles of places by filters.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/conv_levels.h"

namespace fovea::kernels {

void dense_conv_forward(const ConvForward& args, const ConvKernels& kernels);
void dense_conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels);
void dense_conv_backward_weights(const ConvBackwardWeights& args, const ConvKernels& kernels);

}  // namespace fovea::kernels
