// What a recurrent network applies at every step of a pass, with what the steps share made once.
#pragma once

#include <memory>

#include "autograd/ops_linear.h"
#include "autograd/ops_recurrent.h"

namespace fovea {

// linear() for a weight that one pass uses many times, as the steps of a recurrent network do. The weight is packed once
// for each direction, and its gradient is one product over the rows of all calls. Made for each pass: the weight
// must keep its value until backward() has run.
class RepeatedLinear {
 public:
  explicit RepeatedLinear(const Var& weight, const Var& bias = {});
  // x: [rows, in] -> activation(x weight^T + bias): [rows, out].
  Var operator()(const Var& x, Activation activation = Activation::none) const;

 private:
  struct Pass;
  std::shared_ptr<Pass> pass_;
  Var joint_;  // without a value: its turn in backward() comes after those of all calls
};

// The end of an LSTM's step whose products were made elsewhere: the gates i f g o are the sum of two or three parts,
// [B, 4 H] each, `added` perhaps undefined. c: [B, H].
LstmState lstm_gates(const Var& input, const Var& product, const Var& added, const Var& c);

}  // namespace fovea
