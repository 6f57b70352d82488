// Convolution, pooling and batch norm of images, with gradients.
//
// Images are [N, H, W, C], channels last (kernels/conv/conv.h says why): reshape(x, {N, H * W, C}) are tokens, and
// a gate over channels, [N, 1, 1, C], broadcasts.
#pragma once

#include "autograd/var.h"
#include "kernels/norm/batch_norm.h"

namespace fovea {

// Rows and columns; one number stands for both.
struct Size2d {
  Size2d(int64_t both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor): reads like PyTorch
  Size2d(int64_t rows, int64_t columns) : h(rows), w(columns) {}
  int64_t h, w;
};

// Zeros around an image; one number stands for all four sides.
struct Padding2d {
  Padding2d(int64_t all) : Padding2d(all, all, all, all) {}  // NOLINT(google-explicit-constructor)
  Padding2d(int64_t t, int64_t b, int64_t l, int64_t r) : top(t), bottom(b), left(l), right(r) {}
  int64_t top, bottom, left, right;
};

// TensorFlow's SAME: ceil(size / stride) places, the odd zero behind.
Padding2d same_padding(Size2d image, Size2d kernel, Size2d stride, Size2d dilation = 1);

struct Conv2dOptions {
  Size2d stride = 1;
  Padding2d padding = 0;
  Size2d dilation = 1;
  int64_t groups = 1;  // as many as channels: depthwise
};

// x: [N, H, W, C], weight: [filters, C / groups, h, w], bias: [filters] or undefined -> [N, H', W', filters].
Var conv2d(const Var& x, const Var& weight, const Var& bias = {}, const Conv2dOptions& options = {});

struct Pool2dOptions {
  Size2d kernel = 2;
  Size2d stride = 0;  // 0: the kernel
  Padding2d padding = 0;
  bool count_padding = true;  // in the mean
};

// x: [N, H, W, C] -> [N, H', W', C]. The gradient of a maximum goes to the first of equals; padding is none.
Var max_pool2d(const Var& x, const Pool2dOptions& options = {});
Var avg_pool2d(const Var& x, const Pool2dOptions& options = {});

// Over all places. x: [N, H, W, C] -> [N, C].
Var global_max_pool2d(const Var& x);
Var global_avg_pool2d(const Var& x);

using NormActivation = kernels::NormActivation;

struct BatchNormOptions {
  bool training = false;  // normalise by the batch, and let the running moments follow it
  float momentum = 0.1f;  // share of the batch in the running moments
  float epsilon = 1e-5f;
  NormActivation activation = NormActivation::none;
};

// Every channel over all other dimensions. x: [..., C]; weight, bias: [C] or undefined; running_mean and
// running_var: [C], changed in place by training (the variance divided by rows - 1, as PyTorch keeps it).
Var batch_norm(const Var& x, const Var& weight, const Var& bias, const Tensor& running_mean,
               const Tensor& running_var, const BatchNormOptions& options = {});

}  // namespace fovea
