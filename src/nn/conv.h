// Layers of image networks; parameter names and defaults follow PyTorch, images are [N, H, W, C].
#pragma once

#include "autograd/ops_conv.h"
#include "nn/module.h"

namespace fovea::nn {

// Parameters: weight [filters, channels / groups, h, w], bias [filters].
class Conv2d : public Module {
 public:
  Conv2d(int64_t channels, int64_t filters, Size2d kernel, Rng& rng, const Conv2dOptions& options = {},
         bool with_bias = true);
  Var operator()(const Var& x) const { return conv2d(x, weight, bias, options); }
  Var weight, bias;
  Conv2dOptions options;
};

// Over all dimensions but the last: [N, H, W, C], or [N, C]. Parameters: weight [C], bias [C]; buffers:
// running_mean [C], running_var [C], which follow the batches while training.
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(int64_t channels, float epsilon = 1e-5f, float momentum = 0.1f);
  Var operator()(const Var& x, const Context& context,
                 NormActivation activation = NormActivation::none) const;
  Var weight, bias, running_mean, running_var;
  float epsilon, momentum;
};

}  // namespace fovea::nn
