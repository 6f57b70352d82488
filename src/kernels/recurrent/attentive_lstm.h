// Stacked LSTMs that attend after every step and read the result at the next: the input feeding of Luong et al.
//
// As in attentive_gru.h, values are what the context is multiplied with, made once for a source sentence, and
// blocks of sentences run from their first step to their last on one thread.
//
//   layer 0:  gates_t = products_t + feed s~_{t-1} + state h0_{t-1}
//   layer l:  gates_t = input dropout(h{l-1}_t) + state hl_{t-1} + bias
//   s~_t = tanh(attention(query(h_t), keys, values) + combine h_t)        h of the last layer
//
// With a window, the place is predicted: p = S sigmoid(vector . tanh(position h_t)); see run_attention.h for
// what it does to the weights.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention/run_attention.h"
#include "kernels/vector/dropout.h"

namespace fovea::kernels {

struct AttentiveLstmLayer {
  const float* input = nullptr;    // [4 H, H]: of the layer below; of layer 0: feed
  const float* state = nullptr;    // [4 H, H]
  const float* bias = nullptr;     // [4 H] or null
  Dropout dropout{};               // of the layer below's states, on the way here
  const float* h_first = nullptr;  // [sentences, H]
  const float* c_first = nullptr;
  float* states = nullptr;  // [steps, H]
  float* cells = nullptr;   // [steps, H], where gates are kept
  float* gates = nullptr;   // [steps, 4 H], or null: nothing is kept for backward
};

// How a step attends.
struct StepAttention {
  RunScore score{};
  Runs runs{};                     // of the whole sentences, or of local_m; predicted ones are written to it
  const float* keys = nullptr;     // [keys, d]
  const float* values = nullptr;   // [keys, H]
  const float* combine = nullptr;  // [H, H]
  const float* query_weight = nullptr;     // [d, H], or null: the state is the query
  const float* query_bias = nullptr;       // [d] or null
  const float* position_weight = nullptr;  // [P, H], or null: nothing is predicted
  const float* position_vector = nullptr;  // [P]
  int64_t position_width = 0, window = 0;
  // Where predicted runs are put: the memory of runs.first, runs.count and runs.centre.
  int32_t* first = nullptr;
  int32_t* count = nullptr;
  float* centre = nullptr;
  // Kept for backward: what combine, query and position made of the state; [steps, projected_width()].
  float* projected = nullptr;
};
// H + (d where there is a query_weight) + P.
int64_t projected_width(const StepAttention& attention, int64_t hidden);

struct AttentiveLstmForward {
  int64_t hidden = 0;
  std::span<const int64_t> lengths{};
  std::span<const AttentiveLstmLayer> layers{};
  StepAttention attention{};
  const float* products = nullptr;  // [steps, 4 H]: of the token, with the biases of layer 0
  float* out = nullptr;             // [steps, H]: s~
};
void attentive_lstm_forward(const AttentiveLstmForward& call, Level level = current_level());

struct AttentiveLstmLayerGradients {
  float* d_input = nullptr;
  float* d_state = nullptr;
  float* d_bias = nullptr;
  float* d_h_first = nullptr;  // never null
  float* d_c_first = nullptr;  // never null
};

// Gradients are overwritten; null ones are skipped. That of products is layer 0's gates, afterwards.
struct AttentiveLstmBackward {
  AttentiveLstmForward forward{};  // as it was; its gates and projected are used up
  std::span<const AttentiveLstmLayerGradients> layers{};
  const float* d_out = nullptr;  // [steps, H]
  float* d_keys = nullptr;       // never null
  float* d_values = nullptr;     // never null
  float* d_vector = nullptr;
  float* d_combine = nullptr;
  float* d_query_weight = nullptr;
  float* d_query_bias = nullptr;
  float* d_position_weight = nullptr;
  float* d_position_vector = nullptr;
  float* work = nullptr;  // [steps, H]
};
void attentive_lstm_backward(const AttentiveLstmBackward& call, Level level = current_level());

}  // namespace fovea::kernels
