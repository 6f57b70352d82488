// Pooling over windows of images [N, H, W, C], with gradients. What lies outside the image is no candidate
// for a maximum; the mean counts it as zeros, or leaves it out.
#pragma once

#include <cstdint>

namespace fovea::kernels {

struct PoolShape {
  int64_t images = 0, height = 0, width = 0, channels = 0;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t top = 0, bottom = 0, left = 0,
          right = 0;  // each less than the kernel: every window meets the image

  int64_t out_height() const { return places(height + top + bottom, kernel_h, stride_h); }
  int64_t out_width() const { return places(width + left + right, kernel_w, stride_w); }

 private:
  static int64_t places(int64_t size, int64_t kernel, int64_t stride) {
    return size < kernel ? 0 : (size - kernel) / stride + 1;
  }
};

// y, place: [images, out_height, out_width, channels]; place is h * width + w of the first maximum in its
// image. A NaN counts as largest.
void max_pool_forward(const PoolShape& shape, const float* x, float* y, int32_t* place);
// dx: as x; the gradient goes to the maxima.
void max_pool_backward(const PoolShape& shape, const float* dy, const int32_t* place, float* dx);

// With count_padding the divisor is the kernel's size everywhere, else the places inside the image.
void avg_pool_forward(const PoolShape& shape, bool count_padding, const float* x, float* y);
void avg_pool_backward(const PoolShape& shape, bool count_padding, const float* dy, float* dx);

// The same, written to be read.
namespace scalar {
void max_pool_forward(const PoolShape& shape, const float* x, float* y, int32_t* place);
void max_pool_backward(const PoolShape& shape, const float* dy, const int32_t* place, float* dx);
void avg_pool_forward(const PoolShape& shape, bool count_padding, const float* x, float* y);
void avg_pool_backward(const PoolShape& shape, bool count_padding, const float* dy, float* dx);
}  // namespace scalar

}  // namespace fovea::kernels
