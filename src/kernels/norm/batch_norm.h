// Batch norm: every channel is normalised by its mean and variance over all rows of a batch, with an
// activation in the same pass.
//
// Rows are places, [rows, channels] with channels last. Sums over rows run in pieces cut by shape alone,
// blocks of rows in float, blocks and pieces in double and in order: the result is the same for any number of
// threads.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

struct BatchNormKernels;
const BatchNormKernels& batch_norm_kernels(Level level = current_level());

enum class NormActivation { none, relu, relu6 };

// mean[c], and variance[c] around it divided by rows (not rows - 1). At least one row.
struct BatchMoments {
  int64_t rows = 0, channels = 0;
  const float* x = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;
};
void batch_moments(const BatchMoments& args, const BatchNormKernels& kernels = batch_norm_kernels());

// y = activation((x - mean) * rstd * weight + bias); y may be x.
struct BatchNormForward {
  int64_t rows = 0, channels = 0;
  const float* x = nullptr;
  const float* mean = nullptr;    // [channels], and so on
  const float* rstd = nullptr;    // 1 / sqrt(variance + epsilon)
  const float* weight = nullptr;  // null for ones
  const float* bias = nullptr;    // null for zeros
  NormActivation activation = NormActivation::none;
  float* y = nullptr;
};
void batch_norm_forward(const BatchNormForward& args, const BatchNormKernels& kernels = batch_norm_kernels());

struct BatchNormBackward {
  int64_t rows = 0, channels = 0;
  const float* x = nullptr;
  const float* y = nullptr;  // read where there is an activation
  const float* dy = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  const float* weight = nullptr;
  NormActivation activation = NormActivation::none;
  bool constant_moments = false;  // mean and rstd do not depend on x (inference)
  float* dx = nullptr;            // null when not wanted
  float* d_weight = nullptr;      // [channels]; always written
  float* d_bias = nullptr;        // [channels]; always written
};
void batch_norm_backward(const BatchNormBackward& args,
                         const BatchNormKernels& kernels = batch_norm_kernels());

// Bodies over rows [begin, end), on the calling thread. Sums are added to.
struct BatchNormKernels {
  // sums[c] += sum of x
  void (*sum)(const BatchMoments& args, int64_t begin, int64_t end, float* sums);
  // sums[c] += sum of (x - mean)^2
  void (*squares)(const BatchMoments& args, int64_t begin, int64_t end, float* sums);
  void (*forward)(const BatchNormForward& args, int64_t begin, int64_t end);
  // dots[c] += sum of g (x - mean) rstd, sums[c] += sum of g; g is dy through the activation.
  void (*backward_sums)(const BatchNormBackward& args, int64_t begin, int64_t end, float* dots, float* sums);
  // dx = (g - sums / rows - (x - mean) rstd dots / rows) rstd weight; both sums 0 for constant moments.
  void (*backward)(const BatchNormBackward& args, int64_t begin, int64_t end, const float* dots,
                   const float* sums);
};

}  // namespace fovea::kernels
