// Layers that make images larger; parameter names and defaults follow PyTorch, images are [N, H, W, C].
#pragma once

#include "autograd/ops_upsample.h"
#include "nn/module.h"

namespace fovea::nn {

// Parameters: weight [channels, filters / groups, h, w], bias [filters].
class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(int64_t channels, int64_t filters, Size2d kernel, Rng& rng,
                  const ConvTranspose2dOptions& options = {}, bool with_bias = true);
  Var operator()(const Var& x) const { return conv_transpose2d(x, weight, bias, options); }
  Var weight, bias;
  ConvTranspose2dOptions options;
};

}  // namespace fovea::nn
