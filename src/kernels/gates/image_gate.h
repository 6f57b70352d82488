// Gates of image networks, with gradients: channels, places or both are multiplied by weights between 0 and 1
// that are computed from the image itself. Channels alone are squeeze and excitation; channels, then places,
// are CBAM.
//
// Everything for an image happens while it is in the second-level cache: x is read from memory once, forward
// and backward, and what lies between two gates is never written there. An image's result does not depend on
// the other images of the call, and all results are the same for any number of threads.
#pragma once

#include "kernels/gates/channel_gate.h"
#include "kernels/gates/spatial_gate.h"

namespace fovea::kernels {

struct ImageGateForward {
  GateShape shape;
  const float* x = nullptr;              // [images, height, width, channels]
  const ChannelGate* channel = nullptr;  // comes first; null for none
  const SpatialGate* spatial = nullptr;  // null for none; one of the two is there
  float* y = nullptr;                    // as x
};
void image_gate_forward(const ImageGateForward& args, Level level = current_level());

struct ImageGateBackward {
  GateShape shape;
  const float* x = nullptr;
  const float* dy = nullptr;
  const ChannelGate* channel = nullptr;  // as the forward pass left them
  const SpatialGate* spatial = nullptr;
  const ChannelGateGradients* d_channel = nullptr;  // where the gate is
  const SpatialGateGradients* d_spatial = nullptr;
  float* dx = nullptr;  // null when not wanted
};
void image_gate_backward(const ImageGateBackward& args, Level level = current_level());

}  // namespace fovea::kernels
