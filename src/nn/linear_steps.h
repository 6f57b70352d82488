// A linear layer in a pass that applies it at every step.
#pragma once

#include <optional>

#include "autograd/ops_repeated.h"
#include "autograd/tape.h"
#include "nn/layers.h"

namespace fovea::nn {

// Made for each pass, and used on one thread.
class LinearSteps {
 public:
  explicit LinearSteps(const Linear& layer) : layer_(layer) {
    if (tape_is_on()) repeated_.emplace(layer.weight, layer.bias);
  }
  // x: [rows, in] -> activation(x weight^T + bias): [rows, out].
  Var operator()(const Var& x, Activation activation = Activation::none) const {
    return repeated_ ? (*repeated_)(x, activation) : layer_(x, activation);
  }

 private:
  const Linear& layer_;
  std::optional<RepeatedLinear> repeated_;  // in a pass that is recorded
};

}  // namespace fovea::nn
