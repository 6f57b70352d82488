// LSTM and GRU layers, stacked and in both directions; parameter names, layout and defaults follow PyTorch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autograd/ops_recurrent.h"
#include "nn/module.h"
#include "nn/projection.h"

namespace fovea::nn {

struct RecurrentOptions {
  int64_t input = 0, hidden = 0;
  int64_t layers = 1;
  bool bidirectional = false;
  bool bias = true;
  float dropout = 0;      // between layers, while training
  bool stepwise = false;  // step() is used: its weights are prepared too
};

// First or last states of all layers: [layers directions, sequences, H], as PyTorch orders them: layer 0
// ahead, layer 0 back, layer 1 ahead, ...
struct RecurrentStates {
  Var h{}, c{};  // c: LSTM only; undefined first states are zeros
};

struct RecurrentResult {
  Var out;  // [tokens, H directions]
  RecurrentStates last;
};

// A stack of recurrent layers. Parameters of layer k: weight_ih_lk [G H, in], weight_hh_lk [G H, H],
// bias_ih_lk and bias_hh_lk [G H], and the same with _reverse for the way back.
class Recurrent : public Module {
 public:
  // x: [tokens, input], sequence after sequence; lengths add up to tokens.
  RecurrentResult operator()(const Var& x, std::span<const int64_t> lengths, Context& context,
                             const RecurrentStates& first = {}) const;
  // A batch of equal lengths. x: [B, T, input]; out: [B, T, H directions].
  RecurrentResult operator()(const Var& x, Context& context, const RecurrentStates& first = {}) const;

  // One token of each row through one layer of one direction, without the tape.
  // x: [rows, input] -> what the layer makes of it before it meets the state, [rows, G H].
  Tensor step_input(int64_t layer, const Tensor& x) const;
  // Replaces the states h (and c of an LSTM) [rows, H] by the next. before: [rows, G H or more].
  void step(int64_t layer, const Tensor& before, Tensor& h, Tensor& c) const;

  int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  const RecurrentOptions& options() const { return options_; }
  // [layers directions], in the order of RecurrentStates.
  std::span<const RecurrentParameters> weights() const { return parameters_; }

 protected:
  Recurrent(RecurrentCell cell, const RecurrentOptions& options, Rng& rng);

 private:
  RecurrentCell cell_;
  RecurrentOptions options_;
  // Throws Error unless step() can run this layer.
  void check_step(int64_t layer) const;
  // Without the tape, with prepared weights.
  RecurrentOutput run_prepared(int64_t layer, const Var& x, std::span<const int64_t> lengths, const Var& h,
                               const Var& c) const;

  std::vector<RecurrentParameters> parameters_;              // [layers directions]
  std::vector<std::unique_ptr<Projection>> input_, hidden_;  // the same; hidden_ where stepwise
};

// One step of a cell for many rows, without the tape. before: [rows, G H or more], product: [rows, G H or
// more]: the products of input and state, with their biases. Replaces h (and c of an LSTM) [rows, H].
void recurrent_step(RecurrentCell cell, const Tensor& before, const Tensor& product, Tensor& h, Tensor& c);

class LSTM : public Recurrent {
 public:
  LSTM(const RecurrentOptions& options, Rng& rng) : Recurrent(RecurrentCell::lstm, options, rng) {}
};

class GRU : public Recurrent {
 public:
  GRU(const RecurrentOptions& options, Rng& rng) : Recurrent(RecurrentCell::gru, options, rng) {}
};

// One step of a decoder. Parameters: weight_ih, weight_hh, bias_ih, bias_hh.
class LSTMCell : public Module {
 public:
  LSTMCell(int64_t input, int64_t hidden, Rng& rng, bool with_bias = true);
  // x: [B, input]; h and c: [B, H], undefined for zeros.
  LstmState operator()(const Var& x, const LstmState& state) const { return lstm_cell(x, state, weights); }
  RecurrentParameters weights;
};

class GRUCell : public Module {
 public:
  GRUCell(int64_t input, int64_t hidden, Rng& rng, bool with_bias = true);
  Var operator()(const Var& x, const Var& h) const { return gru_cell(x, h, weights); }
  RecurrentParameters weights;
};

}  // namespace fovea::nn
