// Convolution of images with gradients.
//
// Images are [N, H, W, C], channels last: a place's features lie side by side. So a 1 x 1 convolution is a
// matrix product, [N, H W, C] are tokens for attention as they stand, and batch norm and gates walk rows.
// Weights are [filters, channels / groups, kernel_h, kernel_w] as PyTorch has them; they are small, and
// packed at every call.
//
// Nothing is padded, unrolled into a matrix or multiplied by zeros: an image is cut into blocks of places
// that see the same taps (its middle, its edges, its corners), and where columns of a kernel are neighbours a
// row of its taps is one run of floats in x. The gradient of x is a convolution of dy; with a stride it is
// one for each place within the stride, of the taps that meet there. Four ways, chosen by shape:
//   conv.cc             1 x 1 at every place: a matrix product
//   conv_depthwise.cc   as many groups as channels: lanes are channels
//   conv_planes.cc      up to three channels come out: lanes are places
//   conv_dense.cc       all others: register tiles of places by vectors of filters
//
// Work is cut by shape alone, into chunks of images (and stripes of rows where images are few), and gradients
// of weights are summed in the order of the chunks: the result is the same for any number of threads. Once
// warm, nothing is allocated. docs/benchmarks.md holds what was measured.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

struct ConvKernels;
const ConvKernels& conv_kernels(Level level = current_level());

struct ConvShape {
  int64_t images = 0, height = 0, width = 0, channels = 0;  // of x
  int64_t filters = 0;                                      // channels of y
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;            // 1: neighbours
  int64_t top = 0, bottom = 0, left = 0, right = 0;  // zeros around the image
  int64_t groups = 1;                                // divides channels and filters

  // Places of y; 0 or less when the kernel does not fit.
  int64_t out_height() const { return places(height + top + bottom, kernel_h, stride_h, dilation_h); }
  int64_t out_width() const { return places(width + left + right, kernel_w, stride_w, dilation_w); }
  int64_t weights() const { return filters * (channels / groups) * kernel_h * kernel_w; }
  friend bool operator==(const ConvShape&, const ConvShape&) = default;

 private:
  static int64_t places(int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
    const int64_t reach = (kernel - 1) * dilation + 1;
    return size < reach ? 0 : (size - reach) / stride + 1;
  }
};

// x: [images, height, width, channels], weight: [filters, channels / groups, kernel_h, kernel_w],
// bias: [filters] or null -> y: [images, out_height, out_width, filters].
struct ConvForward {
  ConvShape shape;
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
};
void conv_forward(const ConvForward& args, const ConvKernels& kernels = conv_kernels());

struct ConvBackwardData {
  ConvShape shape;
  const float* dy = nullptr;
  const float* weight = nullptr;
  float* dx = nullptr;
};
void conv_backward_data(const ConvBackwardData& args, const ConvKernels& kernels = conv_kernels());

struct ConvBackwardWeights {
  ConvShape shape;
  const float* x = nullptr;
  const float* dy = nullptr;
  float* d_weight = nullptr;
  float* d_bias = nullptr;  // [filters], null when not wanted
};
void conv_backward_weights(const ConvBackwardWeights& args, const ConvKernels& kernels = conv_kernels());

// The same, written to be read.
namespace scalar {
void conv_forward(const ConvForward& args);
void conv_backward_data(const ConvBackwardData& args);
void conv_backward_weights(const ConvBackwardWeights& args);
}  // namespace scalar

}  // namespace fovea::kernels
