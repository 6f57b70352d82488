// Optimiser steps over a list of tensors in one parallel region, by PyTorch's formulas.
//
// A gradient may be row-sparse: the rows not named have gradient zero, and by default the step treats them
// exactly so (momentum moves on, weight decay acts). `lazy_rows` leaves them untouched instead.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace fovea::kernels {

// One parameter tensor of a step. Weights and states are updated in place.
struct OptimTensor {
  float* weight = nullptr;          // [count]
  const float* gradient = nullptr;  // [count], or [row_count, row_size] when row_ids is set
  int64_t count = 0;
  float* state[3] = {};  // [count] each, zero before the first step; how many are used is the rule's choice
  double learning_rate = 0;
  double weight_decay = 0;
  int64_t step = 1;  // 1 for the first update of this tensor
  // Row-sparse gradient: ids ascending without repeats.
  const int32_t* row_ids = nullptr;
  int64_t row_count = 0;
  int64_t row_size = 0;
};

struct StepOptions {
  float gradient_scale = 1;  // multiplies every gradient: clipping by norm, accumulation
  bool lazy_rows = false;    // skip the rows that a row-sparse gradient does not name
};

struct SgdRule {  // state[0]: momentum buffer, used when momentum != 0
  double momentum = 0, dampening = 0;
  bool nesterov = false;
};
struct AdamRule {  // state[0]: first moment, state[1]: second moment
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = false;       // AdamW: decay acts on the weights, not through the gradient
  bool bias_correction = true;  // of the moments, which begin at 0; BERT was trained without
};
struct AdaDeltaRule {  // state[0]: mean square of gradients, state[1]: of updates
  double rho = 0.9, epsilon = 1e-6;
};
struct AdagradRule {  // state[0]: sum of squares
  double learning_rate_decay = 0, epsilon = 1e-10;
};
struct RmspropRule {  // state[0]: mean square, state[1]: momentum buffer (momentum != 0), state[2]: mean
                      // (centered)
  double alpha = 0.99, epsilon = 1e-8, momentum = 0;
  bool centered = false;
};

struct OptimKernels;
const OptimKernels& optim_kernels(Level level = current_level());

void optim_step(const SgdRule& rule, std::span<const OptimTensor> tensors, const StepOptions& options = {},
                const OptimKernels& kernels = optim_kernels());
void optim_step(const AdamRule& rule, std::span<const OptimTensor> tensors, const StepOptions& options = {},
                const OptimKernels& kernels = optim_kernels());
void optim_step(const AdaDeltaRule& rule, std::span<const OptimTensor> tensors,
                const StepOptions& options = {}, const OptimKernels& kernels = optim_kernels());
void optim_step(const AdagradRule& rule, std::span<const OptimTensor> tensors,
                const StepOptions& options = {}, const OptimKernels& kernels = optim_kernels());
void optim_step(const RmspropRule& rule, std::span<const OptimTensor> tensors,
                const StepOptions& options = {}, const OptimKernels& kernels = optim_kernels());

// average += (1 - decay) * (weight - average), element by element.
struct EmaTensor {
  float* average = nullptr;
  const float* weight = nullptr;
  int64_t count = 0;
};
void ema_update(std::span<const EmaTensor> tensors, double decay,
                const OptimKernels& kernels = optim_kernels());

// Sums of squares in double, one per tensor, added in a fixed order. Not finite exactly when the tensor holds
// a NaN or Inf: squares of floats cannot overflow a double.
struct ConstTensor {
  const float* values = nullptr;
  int64_t count = 0;
};
void sums_of_squares(std::span<const ConstTensor> tensors, double* sums,
                     const OptimKernels& kernels = optim_kernels());

// What a rule needs at each element, settled once per tensor. Which fields count is the rule's choice.
struct OptimCoefficients {
  float gradient_scale = 1;
  float learning_rate = 0;      // with Adam's first bias correction and Adagrad's decay already in it
  float weight_decay = 0;       // added to the gradient times the weight
  float keep = 1;               // decoupled decay: the weight is multiplied by it first
  float decay1 = 0, gain1 = 1;  // Adam's first moment; the momentum buffer
  float decay2 = 0, gain2 = 1;  // mean squares
  float epsilon = 0;
  float root_scale = 1;  // Adam: 1 / sqrt(second bias correction)
};

// A contiguous piece of one tensor. A null gradient stands for zeros.
struct OptimRange {
  float* weight = nullptr;
  const float* gradient = nullptr;
  float* state[3] = {};
  int64_t count = 0;
};

// Bodies over one range, on the calling thread.
struct OptimKernels {
  using Step = void (*)(const OptimRange& range, const OptimCoefficients& c);
  Step sgd, sgd_momentum, sgd_nesterov, adam, adadelta, adagrad;
  Step rmsprop[2][2];  // [momentum][centered]
  void (*ema)(float* average, const float* weight, int64_t count, float gain);
  double (*sum_of_squares)(const float* values, int64_t count);
};

}  // namespace fovea::kernels
