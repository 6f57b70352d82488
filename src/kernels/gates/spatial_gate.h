// The parts of a gate over places: mean and maximum over the channels of a place make a picture of two
// channels, and a convolution makes the weights of places from it. kernels/gates/image_gate.h puts them
// together.
#pragma once

#include "base/cpu.h"
#include "kernels/gates/gate_shape.h"

namespace fovea::kernels {

// gate = sigmoid(convolution of maps), padded so that the size stays.
struct SpatialGate {
  int64_t kernel = 1;             // rows and columns; odd
  const float* weight = nullptr;  // [1, 2, kernel, kernel]
  // Written by the forward pass, read by the backward pass.
  float* maps = nullptr;       // [images, height, width, 2]: mean, maximum
  int32_t* channel = nullptr;  // [images, height, width]: of the first maximum
  float* gate = nullptr;       // [images, height, width]
};

struct SpatialGateGradients {
  float* logits = nullptr;  // [images, height, width]: before the sigmoid
  float* weight = nullptr;  // always written
};

// Bodies on the calling thread; x, dy and y are places of one image, the other arrays hold one number for
// each place.
struct SpatialGateKernels {
  // maps: [places, 2]. Where a place holds a NaN, the mean does.
  void (*pool)(const float* x, int64_t places, int64_t channels, float* maps, int32_t* channel);
  // gate = sigmoid(gate), and y = x gate; y may be x. With past_cache, y goes straight to memory, where its
  // rows are aligned.
  void (*scale)(const float* x, int64_t places, int64_t channels, float* gate, float* y, bool past_cache);
  // d_logits = gate (1 - gate) (sum over channels of x dy)
  void (*dot)(const float* x, const float* dy, int64_t places, int64_t channels, const float* gate,
              float* d_logits);
  // dx = dy gate + d_mean / channels, and d_max more at `channel`.
  struct Backward {
    int64_t places = 0, channels = 0;
    const float* dy = nullptr;
    const float* gate = nullptr;
    const float* d_maps = nullptr;  // [places, 2]
    const int32_t* channel = nullptr;
    float* dx = nullptr;
    bool past_cache = false;
  };
  void (*backward)(const Backward& args);
};
const SpatialGateKernels& spatial_gate_kernels(Level level = current_level());

}  // namespace fovea::kernels
