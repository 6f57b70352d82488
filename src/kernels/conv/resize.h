// Bilinear resize of images [N, H, W, C], with its gradient: between the centres of pixels, as PyTorch's
// interpolate has it with align_corners and antialias off.
//
// Work is cut by shape alone, and the gradient adds up in reading order within an image: the result is the same
// for any number of threads.
#pragma once

#include <cstdint>

namespace fovea::kernels {

struct ResizeShape {
  int64_t images = 0, height = 0, width = 0, channels = 0;  // of x
  int64_t out_height = 0, out_width = 0;                    // of y
};

void resize_forward(const ResizeShape& shape, const float* x, float* y);
// dx: as x, overwritten.
void resize_backward(const ResizeShape& shape, const float* dy, float* dx);

// The same, written to be read.
namespace scalar {
void resize_forward(const ResizeShape& shape, const float* x, float* y);
void resize_backward(const ResizeShape& shape, const float* dy, float* dx);
}  // namespace scalar

}  // namespace fovea::kernels
