// Cross-entropy fused with softmax, label smoothing and an ignored index: probabilities are never stored.
//
// With smoothing e over C classes, loss = (1 - e) (lse - x[target]) + e (lse - mean(x)), PyTorch's
// definition.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace fovea::kernels {

struct LossKernels;
const LossKernels& loss_kernels(Level level = current_level());

// Each row of logits is read from memory once, and its gradient written in the same visit when wanted.
struct CrossEntropy {
  int64_t rows = 0, classes = 0;
  const float* logits = nullptr;     // [rows, classes]
  const int32_t* targets = nullptr;  // [rows], each in [0, classes) or `ignored`
  int32_t ignored = -100;            // rows with this target have loss 0 and gradient 0
  float smoothing = 0;
  float* losses = nullptr;    // [rows]
  float* lse = nullptr;       // [rows], log of the sum of exponentials; null when not wanted
  float* gradient = nullptr;  // [rows, classes], may be the logits; null when not wanted
  float gradient_scale = 1;   // the gradient is that of gradient_scale * (sum of losses)
};
void cross_entropy(const CrossEntropy& args, const LossKernels& kernels = loss_kernels());

// The gradient alone, from the logits and the lse of the forward pass, with one factor per row.
struct CrossEntropyBackward {
  int64_t rows = 0, classes = 0;
  const float* logits = nullptr;
  const int32_t* targets = nullptr;
  int32_t ignored = -100;
  float smoothing = 0;
  const float* lse = nullptr;
  const float* d_losses = nullptr;  // [rows]
  float* d_logits = nullptr;        // may be the logits
};
void cross_entropy_backward(const CrossEntropyBackward& args, const LossKernels& kernels = loss_kernels());

// Bodies over rows [begin, end), on the calling thread.
struct LossKernels {
  void (*cross_entropy)(const CrossEntropy& args, int64_t begin, int64_t end);
  void (*cross_entropy_backward)(const CrossEntropyBackward& args, int64_t begin, int64_t end);
};

}  // namespace fovea::kernels
