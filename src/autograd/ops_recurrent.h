// LSTM and GRU, as whole layers over sequences of any lengths and as single cells for decoders.
//
// Tokens are packed: those of sequence 0 first, then those of sequence 1; a batch [B, T, I] of equal lengths
// is the same memory seen as [B T, I]. Definitions and parameters are PyTorch's.
#pragma once

#include <cstdint>
#include <span>

#include "autograd/var.h"
#include "kernels/recurrent/recurrent.h"

namespace fovea {

using kernels::RecurrentCell;

// One direction of one layer; G is 4 (LSTM: i f g o) or 3 (GRU: r z n).
struct RecurrentParameters {
  Var weight_ih;             // [G H, I]
  Var weight_hh;             // [G H, H]
  Var bias_ih{}, bias_hh{};  // [G H] or undefined
};

struct RecurrentOutput {
  Var out;  // [tokens, H directions]: the states after each token, the second direction's beside the first's
  Var h;    // [directions, sequences, H]: the last states (of an empty sequence, the first)
  Var c;    // the same; LSTM only
};

// One layer. x: [tokens, I]; lengths: of the sequences, adding up to tokens; one or two directions, the
// second running from the end. First states h and c: [directions, sequences, H], undefined for zeros.
RecurrentOutput recurrent_layer(RecurrentCell cell, const Var& x, std::span<const int64_t> lengths,
                                std::span<const RecurrentParameters> directions, const Var& h = {},
                                const Var& c = {});

// Throws Error unless x is [tokens, I] and the lengths, none of them negative, add up to tokens.
void check_packed(RecurrentCell cell, const Var& x, std::span<const int64_t> lengths);

struct LstmState {
  Var h, c;  // [B, H]
};

// One step. x: [B, I].
LstmState lstm_cell(const Var& x, const LstmState& state, const RecurrentParameters& parameters);
Var gru_cell(const Var& x, const Var& h, const RecurrentParameters& parameters);  // h: [B, H]

}  // namespace fovea
