// A GRU that attends before every step: the state so far is the query, and the context enters all gates.
//
// What a decoder does with the context is linear (it enters the gates, and the output layer), so keys' values
// are those products, made once for a source sentence: a step holds one product with the state, the attention
// and the gates. Sentences run as in recurrent.h: sorted by length, in blocks, each on one thread from its
// first step to its last. Weight gradients are products over all tokens, after the loop.
//
//   query_t = U s_{t-1} + b            or s_{t-1} itself
//   seen_t  = attention(query_t, keys, values)                     [3 H + E]
//   s_t     = GRU(products_t + seen_t[0 .. 3 H), s_{t-1})
//   extra_t = seen_t[3 H ...]                                       for the output layer
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention/run_attention.h"

namespace fovea::kernels {

struct AttentiveGruForward {
  int64_t hidden = 0, extra = 0;       // H and E
  std::span<const int64_t> lengths{};  // steps of each sentence; runs.query_begin are their sums
  RunScore score{};
  Runs runs{};                          // a query is a step
  const float* products = nullptr;      // [steps, 3 H]: the input's, with its bias
  const float* h_first = nullptr;       // [sentences, H]
  const float* keys = nullptr;          // [keys, d]
  const float* values = nullptr;        // [keys, 3 H + E]
  const float* weight = nullptr;        // of the state: [3 H, H]
  const float* bias = nullptr;          // [3 H]
  const float* query_weight = nullptr;  // [d, H], or null: the state is the query
  const float* query_bias = nullptr;    // [d] or null
  float* out = nullptr;                 // [steps, H]: the states
  float* context = nullptr;             // [steps, E]
  // What backward needs, or null.
  float* gates = nullptr;    // [steps, 4 H]
  float* queries = nullptr;  // [steps, d] where there is a query_weight
};
void attentive_gru_forward(const AttentiveGruForward& call, Level level = current_level());

// Gradients are overwritten.
struct AttentiveGruBackward {
  AttentiveGruForward forward{};     // as it was; its gates are used up
  const float* d_out = nullptr;      // [steps, H] or null
  const float* d_context = nullptr;  // [steps, E] or null
  float* d_seen = nullptr;           // [steps, 3 H + E]: its first 3 H columns are the gradient of products
  float* d_h_first = nullptr;
  float* d_keys = nullptr;
  float* d_values = nullptr;
  float* d_weight = nullptr;
  float* d_bias = nullptr;
  float* d_query_weight = nullptr;
  float* d_query_bias = nullptr;
  float* d_vector = nullptr;
  float* states = nullptr;     // work: [steps, H]
  float* d_queries = nullptr;  // work: [steps, d] where there is a query_weight
};
void attentive_gru_backward(const AttentiveGruBackward& call, Level level = current_level());

}  // namespace fovea::kernels
