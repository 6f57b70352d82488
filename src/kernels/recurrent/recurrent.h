// LSTM and GRU over whole sequences of different lengths: no work and no memory on padding.
//
// Definitions and weight layout are PyTorch's (gates i f g o and r z n, b_hn inside r * (...)). Tokens are
// packed batch-major: those of sequence 0 first, then those of sequence 1. The input's products are one large
// gemm over all tokens. Sequences are then sorted by length and dealt into blocks; a block runs its whole
// time loop on one thread, its rows of the batch shrinking as sequences end, without meeting the others. A
// row gives the same bytes in any block, so neither the cut nor the number of threads shows in the results.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace fovea::kernels {

enum class RecurrentCell { lstm, gru };

constexpr int64_t recurrent_gates(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : 3;
}

// One direction of one layer. G is recurrent_gates(cell), H hidden, I input.
struct RecurrentWeights {
  const float* input = nullptr;        // weight_ih [G H, I]
  const float* hidden = nullptr;       // weight_hh [G H, H]
  const float* input_bias = nullptr;   // bias_ih [G H] or null
  const float* hidden_bias = nullptr;  // bias_hh [G H] or null
};

struct RecurrentSize {
  RecurrentCell cell = RecurrentCell::lstm;
  int64_t input = 0, hidden = 0;
  std::span<const int64_t> lengths;  // of the sequences; tokens are their sum. 0 is allowed
};

struct RecurrentForward {
  RecurrentSize size;
  bool reverse = false;  // runs from the last token of each sequence to the first
  RecurrentWeights weights;
  const float* x = nullptr;        // [tokens, I]; forward alone: null when `work` holds the products already
  const float* h_first = nullptr;  // [sequences, H] or null for zeros
  const float* c_first = nullptr;  // the same, LSTM only
  float* out = nullptr;            // [tokens, out_stride]: H columns are written
  int64_t out_stride = 0;
  float* h_last = nullptr;  // [sequences, H] or null
  float* c_last = nullptr;
  // What backward needs; without it (null) nothing of the steps is kept. [tokens, 4 H]: i f g o, or r z n and
  // h_n = W_hn h + b_hn.
  float* gates = nullptr;
  float* cells = nullptr;  // [tokens, H], LSTM only; null exactly when gates is
  float* work = nullptr;   // [tokens, G H]: where gates is null, room for the input's products
};

// Gradients are overwritten, except d_x where `add_x` says that another direction has written it. Null ones
// are skipped.
struct RecurrentBackward {
  RecurrentForward forward;         // as it was; its gates are used up
  const float* d_out = nullptr;     // [tokens, out_stride] or null
  const float* d_h_last = nullptr;  // [sequences, H] or null
  const float* d_c_last = nullptr;
  float* d_x = nullptr;
  bool add_x = false;
  float* d_h_first = nullptr;
  float* d_c_first = nullptr;
  float* d_input = nullptr;  // of weight_ih, and so on
  float* d_hidden = nullptr;
  float* d_input_bias = nullptr;
  float* d_hidden_bias = nullptr;
  float* work = nullptr;  // [tokens, H], needed for d_hidden
};

// The directions of one layer (one or two), run side by side.
void recurrent_forward(std::span<const RecurrentForward> directions, Level level = current_level());
void recurrent_backward(std::span<const RecurrentBackward> directions, Level level = current_level());

// A block of sequences in one direction, longest first, on the calling thread. Row r meets token
// first[r] + t * step at time t < length[r].
struct RecurrentBlock {
  RecurrentCell cell = RecurrentCell::lstm;
  int64_t hidden = 0;
  int64_t rows = 0;
  const int64_t* sequence = nullptr;  // [rows]: its place in h_first, h_last and the like
  const int64_t* first = nullptr;     // [rows]
  const int64_t* length = nullptr;    // [rows], falling
  int64_t step = 1;
  // Forward: one pack [H, H] per gate, one after the other. Backward: one pack [G H, H].
  const float* packed = nullptr;
  // Where all lengths are 1, the product with the hidden state is made outside: [sequences, G H].
  const float* product = nullptr;
  bool want_first = true;         // backward: the gradient of the first state is wanted
  const float* bias = nullptr;    // [4 H]: of the gates; the GRU's last H belong to h_n
  const float* before = nullptr;  // forward: [tokens, before_stride] the input's products
  int64_t before_stride = 0;
  const RecurrentForward* forward = nullptr;
  const RecurrentBackward* backward = nullptr;
  float* scratch = nullptr;
};

// One row of one step, for ops whose steps do more than the cell. Pointers are to the row's unit 0, `product`
// to unit begin's.
struct RecurrentForwardRow {
  const float* before = nullptr;   // [G H]: the input's products
  const float* product = nullptr;  // [G, product_stride]: the state's products
  int64_t product_stride = 0;
  const float* h = nullptr;  // the state before and after
  float* h_next = nullptr;
  float* c = nullptr;  // LSTM: the state, updated
  float* out = nullptr;
  float* gates = nullptr;  // [4 H], kept for backward, or null
  float* cells = nullptr;
};

// One row of one step backwards. `gates` holds the activations, then their gradients; `rows` takes the
// gradients that meet weight_hh.
struct RecurrentBackwardRow {
  const float* d_out = nullptr;  // or null
  float* d_h = nullptr;          // from the step after this one; GRU: then what passes by the gates
  float* d_c = nullptr;
  const float* cells = nullptr;
  const float* c_before = nullptr;  // or null for zeros
  const float* h_before = nullptr;
  float* gates = nullptr;
  float* rows = nullptr;  // [G H]
};

struct RecurrentKernels {
  // Floats of scratch memory that a block of this many rows takes.
  int64_t (*scratch_size)(RecurrentCell cell, int64_t rows, int64_t hidden);
  void (*forward)(const RecurrentBlock&);
  void (*backward)(const RecurrentBlock&);  // leaves the gates' gradients in gates
  void (*forward_row)(RecurrentCell cell, const RecurrentForwardRow& row, const float* bias, int64_t hidden);
  void (*backward_row)(RecurrentCell cell, const RecurrentBackwardRow& row, int64_t hidden);
};

const RecurrentKernels& recurrent_kernels(Level level = current_level());

}  // namespace fovea::kernels
