// The parts of a gate over channels: an image is pooled over its places, and a small network of two layers
// makes a weight for every channel. kernels/gates/image_gate.h puts them together.
#pragma once

#include "base/cpu.h"
#include "kernels/gates/gate_shape.h"

namespace fovea::kernels {

// gate = sigmoid(sum over pools of weight2 relu(weight1 pooled + bias1) + bias2).
struct ChannelGate {
  int64_t hidden = 0;              // features of the first layer
  bool with_max = false;           // pools are the mean over places and the maximum; else the mean
  const float* weight1 = nullptr;  // [hidden, channels]
  const float* bias1 = nullptr;    // [hidden], or null
  const float* weight2 = nullptr;  // [channels, hidden]
  const float* bias2 = nullptr;    // [channels], or null
  // Written by the forward pass, read by the backward pass.
  float* pooled = nullptr;    // [images, pools, channels]
  int32_t* place = nullptr;   // [images, channels]: of the first maximum; null without
  float* features = nullptr;  // [images, pools, hidden]: after the ReLU
  float* gate = nullptr;      // [images, channels]

  int64_t pools() const { return with_max ? 2 : 1; }
};

struct ChannelGateGradients {
  float* logits = nullptr;    // [images, channels]: before the sigmoid
  float* features = nullptr;  // [images, pools, hidden]: before the ReLU
  float* weight1 = nullptr;   // always written, as is weight2
  float* bias1 = nullptr;     // null when not wanted
  float* weight2 = nullptr;
  float* bias2 = nullptr;  // null when not wanted
};

// Bodies on the calling thread; x, dy and y are places of one image.
struct ChannelGateKernels {
  // mean[c]; where `max` is not null also the first maximum and its place. Where a channel holds a NaN, the
  // mean does.
  void (*pool)(const float* x, int64_t places, int64_t channels, float* mean, float* max, int32_t* place);
  // Writes an image's features and gate from its pooled.
  void (*network)(const ChannelGate& gate, int64_t channels, int64_t image);
  // y = x factor + shift; factor and shift: [channels]. y may be x.
  struct Scale {
    int64_t places = 0, channels = 0;
    const float* x = nullptr;
    const float* factor = nullptr;
    const float* shift = nullptr;  // null for zeros
    float* y = nullptr;
    bool past_cache = false;  // y goes straight to memory, where its rows are aligned
  };
  void (*scale)(const Scale& args);
  // sums[c] = sum of x dy
  void (*dot)(const float* x, const float* dy, int64_t places, int64_t channels, float* sums);
  // From the gradient of an image's gate: those of its logits and features, and d_pooled [pools, channels].
  void (*network_backward)(const ChannelGate& gate, const ChannelGateGradients& gradients, int64_t channels,
                           int64_t image, const float* d_gate, float* d_pooled);
};
const ChannelGateKernels& channel_gate_kernels(Level level = current_level());

}  // namespace fovea::kernels
