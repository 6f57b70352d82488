// Layer norm over rows, alone or fused with the dropout and residual sum that come before it in a
// Transformer.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "kernels/vector/dropout.h"

namespace fovea::kernels {

struct NormKernels;
const NormKernels& norm_kernels(Level level = current_level());

// y = (s - mean) / sqrt(variance + epsilon) * weight + bias, with s = residual + dropout(x), row by row.
// Arrays are [rows, columns] unless said otherwise; y may be x.
struct NormForward {
  int64_t rows = 0, columns = 0;
  const float* x = nullptr;
  const float* residual = nullptr;  // null: s = dropout(x)
  Dropout dropout = {};
  const float* weight = nullptr;  // [columns], null for ones
  const float* bias = nullptr;    // [columns], null for zeros
  float epsilon = 1e-5f;
  float* sum = nullptr;  // s, for the gradient and for pre-norm layers; null when not wanted
  float* y = nullptr;
  float* mean = nullptr;  // [rows], null when not wanted
  float* rstd = nullptr;  // [rows], 1 / sqrt(variance + epsilon), null when not wanted
};
void norm_forward(const NormForward& args, const NormKernels& kernels = norm_kernels());

// Gradients from dy, what was normalised (s, or x where s = x) and the statistics kept by the forward pass.
struct NormBackward {
  int64_t rows = 0, columns = 0;
  const float* dy = nullptr;
  const float* d_sum = nullptr;  // what reaches s by other ways (pre-norm); null for none
  const float* sum = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  const float* weight = nullptr;
  Dropout dropout = {};
  float* d_residual = nullptr;  // gradient of s, which is that of the residual
  float* d_x = nullptr;         // gradient of x: that of s through the dropout; null when not wanted
  float* d_weight = nullptr;    // [columns], null when not wanted
  float* d_bias = nullptr;      // [columns], null when not wanted
};
void norm_backward(const NormBackward& args, const NormKernels& kernels = norm_kernels());

// Bodies over rows [begin, end), on the calling thread.
struct NormKernels {
  // `row` has room for one row: used when s is not kept.
  void (*forward)(const NormForward& args, int64_t begin, int64_t end, float* row);
  // d_weight and d_bias (both or neither) are added to.
  void (*backward)(const NormBackward& args, int64_t begin, int64_t end, float* d_weight, float* d_bias);
};

}  // namespace fovea::kernels
