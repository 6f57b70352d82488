// Convolutions to few channels, forward and the gradient of x: a gate over places has one filter.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/conv_levels.h"

namespace fovea::kernels {

// Whether these take the call: few enough channels come out, and columns are not strided.
bool planes_conv_forward_fits(const ConvShape& s);
bool planes_conv_backward_data_fits(const ConvShape& s);
void planes_conv_forward(const ConvForward& args, const ConvKernels& kernels);
void planes_conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels);

}  // namespace fovea::kernels
