// The layers every model is made of; parameter names and defaults follow PyTorch.
#pragma once

#include "autograd/ops.h"
#include "nn/module.h"

namespace fovea::nn {

// y = activation(x weight^T + bias). Parameters: weight [out, in], bias [out].
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, Rng& rng, bool with_bias = true);
  Var operator()(const Var& x, Activation activation = Activation::none) const {
    return linear(x, weight, bias, activation);
  }
  Var weight, bias;
};

}  // namespace fovea::nn
