// What the backward passes of recurrent decoders share after their steps: gradients of weights from those of all steps
// at once.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention/run_attention.h"

namespace fovea::kernels {

// Gradients of the outputs of a linear layer at all steps, [steps, columns] in rows `stride` apart.
struct StepGradients {
  int64_t steps, columns;
  const float* data;
  int64_t stride;
};

// d_weight [columns, in] = gradients^T inputs, inputs: [steps, in]. Nothing where d_weight is null.
void weight_gradient(const StepGradients& gradients, const float* inputs, int64_t in, float* d_weight);
// d_bias [columns]: the sums of the gradients' columns. Nothing where d_bias is null.
void bias_gradient(const StepGradients& gradients, float* d_bias);

// The state before each step, [steps, hidden]: `first` [sentences, hidden] (null: zeros), then the states of the
// sentence's steps but the last.
void previous_states(const Runs& runs, const float* first, const float* states, int64_t hidden,
                     float* previous);

// sums [count]: of parts [blocks, count], in the order of the blocks. Nothing where sums is null.
void sum_blocks(std::span<const float> parts, int64_t count, float* sums);

}  // namespace fovea::kernels
