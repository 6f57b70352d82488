// The layers every model is made of; parameter names and defaults follow PyTorch.
#pragma once

#include <string>

#include "autograd/ops.h"
#include "nn/module.h"
#include "nn/projection.h"

namespace fovea::nn {

// "relu", "gelu", "swish" or "silu"; throws Error on anything else.
Activation activation_named(const std::string& name);

// y = activation(x weight^T + bias). Parameters: weight [out, in], bias [out].
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, Rng& rng, bool with_bias = true);
  Var operator()(const Var& x, Activation activation = Activation::none) const {
    const PreparedLinear* const prepared = projection_.in_use();
    return prepared != nullptr ? apply(*prepared, x, activation) : linear(x, weight, bias, activation);
  }
  Var weight, bias;

 private:
  Projection projection_;
};

// Over the last dimension. Parameters: weight [d], bias [d].
class LayerNorm : public Module {
 public:
  explicit LayerNorm(int64_t d, float epsilon = 1e-5f);
  Var operator()(const Var& x) const { return layer_norm(x, weight, bias, epsilon); }
  Var weight, bias;
  float epsilon;
};

}  // namespace fovea::nn
