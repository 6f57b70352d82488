// Making images larger, with gradients: bilinear resize and transposed convolution. Images are [N, H, W, C].
#pragma once

#include "autograd/ops_conv.h"

namespace fovea {

// Bilinear between the centres of pixels (PyTorch's interpolate with align_corners and antialias off).
// x: [N, H, W, C] -> [N, size.h, size.w, C].
Var resize2d(const Var& x, Size2d size);

struct ConvTranspose2dOptions {
  Size2d stride = 1;
  Padding2d padding = 0;      // of the convolution that this is the gradient of: it makes the result smaller
  Size2d output_padding = 0;  // rows and columns added at the end; less than the stride
  Size2d dilation = 1;
  int64_t groups = 1;
};

// The gradient of conv2d with respect to its images, as a layer of its own: with a stride of 2, twice the size.
// x: [N, H, W, C], weight: [C, filters / groups, h, w], bias: [filters] or undefined -> [N, H', W', filters]
// with H' = (H - 1) stride - padding + dilation (h - 1) + output_padding + 1 (PyTorch's definition).
Var conv_transpose2d(const Var& x, const Var& weight, const Var& bias = {},
                     const ConvTranspose2dOptions& options = {});

}  // namespace fovea
