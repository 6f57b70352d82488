// Gates of image networks, with gradients: channels, places or both of an image are multiplied by weights
// between 0 and 1 that are computed from the image itself.
#pragma once

#include "autograd/var.h"

namespace fovea {

// Weights of channels: sigmoid(network(mean over places)), and with_max adds network(maximum over places)
// before the sigmoid. network(v) = weight2 relu(weight1 v + bias1) + bias2.
struct ChannelGate {
  Var weight1;       // [hidden, C]; undefined: channels have no weights
  Var bias1 = {};    // [hidden], or undefined
  Var weight2 = {};  // [C, hidden]
  Var bias2 = {};    // [C], or undefined
  bool with_max = false;
};

// Weights of places: sigmoid(convolution of the mean and the maximum over channels), padded so that the size
// stays.
struct SpatialGate {
  Var weight;  // [1, 2, k, k], k odd; undefined: places have no weights
};

struct GatedImages {
  Var y;           // as x
  Tensor channel;  // the weights that acted: [N, C], or undefined
  Tensor spatial;  // [N, H, W], or undefined
};

// x: [N, H, W, C], times the weights of its channels; the product times the weights of its places. The
// gradient of a maximum goes to the first of equals.
GatedImages gate_images(const Var& x, const ChannelGate& channel, const SpatialGate& spatial = {});

}  // namespace fovea
