// Convolutions of as many groups as channels: every channel for itself, with one filter or several.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/conv_levels.h"

namespace fovea::kernels {

void depthwise_conv_forward(const ConvForward& args, const ConvKernels& kernels);
void depthwise_conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels);
void depthwise_conv_backward_weights(const ConvBackwardWeights& args, const ConvKernels& kernels);

}  // namespace fovea::kernels
