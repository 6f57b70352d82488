// Passes each image through its gates while it is in the cache, and sums the gradients of their weights.
#include "kernels/gates/image_gate.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/conv/conv.h"
#include "kernels/gemm/gemm.h"
#include "kernels/level_table.h"
#include "kernels/scratch.h"
#include "kernels/vector/reduce.h"

FOVEA_LEVEL_TABLES(ChannelGateKernels, channel_gate_table, channel_gate_kernels)
FOVEA_LEVEL_TABLES(SpatialGateKernels, spatial_gate_table, spatial_gate_kernels)

namespace fovea::kernels {
namespace {

// body(image) for every image, on all threads; small images share a chunk.
void for_each_image(const GateShape& s, FunctionRef<void(int64_t image)> body) {
  constexpr int64_t kChunk = 1 << 15;  // floats that make a chunk worth handing out
  parallel_for(s.images, std::max<int64_t>(1, kChunk / s.image_floats()), [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) body(image);
  });
}

// An output so large that it leaves the cache before anyone reads it is written past the cache: a plain store
// would first read the line from memory. A smaller one stays near for the next layer.
bool writes_past_cache(const GateShape& s) {
  constexpr int64_t kLarge = int64_t{4} << 20;  // 16 MiB
  return s.images * s.image_floats() >= kLarge;
}

// What lies between the two gates of an image, on vector boundaries. Convolutions use slots 2 and 3.
float* between_gates(const GateShape& s) {
  constexpr int64_t kAlignment = 16;  // floats
  const auto address = reinterpret_cast<uintptr_t>(scratch_floats(1, s.image_floats() + kAlignment));
  constexpr uintptr_t kBytes = kAlignment * sizeof(float);
  return reinterpret_cast<float*>((address + kBytes - 1) / kBytes * kBytes);
}

ConvShape conv_shape(const GateShape& s, const SpatialGate& gate, int64_t images) {
  const int64_t around = gate.kernel / 2;
  return {.images = images,
          .height = s.height,
          .width = s.width,
          .channels = 2,
          .filters = 1,
          .kernel_h = gate.kernel,
          .kernel_w = gate.kernel,
          .top = around,
          .bottom = around,
          .left = around,
          .right = around};
}

// One image and the gates' functions of one instruction-set level.
struct Pass {
  const GateShape& shape;
  const ChannelGateKernels& over_channels;
  const SpatialGateKernels& over_places;
  int64_t image;
  bool past_cache;  // for what goes out

  void forward(const ChannelGate& gate, const float* x, float* y, bool last) const {
    const int64_t n = shape.channels;
    float* const pooled = gate.pooled + image * gate.pools() * n;
    over_channels.pool(x, shape.places(), n, pooled, gate.with_max ? pooled + n : nullptr,
                       gate.with_max ? gate.place + image * n : nullptr);
    over_channels.network(gate, n, image);
    scale(gate, x, nullptr, y, last);
  }

  void scale(const ChannelGate& gate, const float* x, const float* shift, float* y, bool last) const {
    over_channels.scale({.places = shape.places(),
                         .channels = shape.channels,
                         .x = x,
                         .factor = gate.gate + image * shape.channels,
                         .shift = shift,
                         .y = y,
                         .past_cache = last && past_cache});
  }

  void backward(const ChannelGate& gate, const ChannelGateGradients& gradients, const float* x,
                const float* dy, float* dx) const {
    const int64_t n = shape.channels;
    float* const d_gate = scratch_floats(0, 3 * n);  // and d_pooled
    float* const d_pooled = d_gate + n;
    over_channels.dot(x, dy, shape.places(), n, d_gate);
    over_channels.network_backward(gate, gradients, n, image, d_gate, d_pooled);
    if (dx == nullptr) return;
    const float share = 1 / static_cast<float>(shape.places());
    for (int64_t c = 0; c < n; ++c) d_pooled[c] *= share;
    scale(gate, dy, d_pooled, dx, true);
    if (!gate.with_max) return;
    const int32_t* const place = gate.place + image * n;
    for (int64_t c = 0; c < n; ++c) dx[place[c] * n + c] += d_pooled[n + c];
  }

  void forward(const SpatialGate& gate, const float* x, float* y) const {
    const int64_t places = shape.places();
    float* const maps = gate.maps + image * places * 2;
    float* const weights = gate.gate + image * places;
    over_places.pool(x, places, shape.channels, maps, gate.channel + image * places);
    conv_forward({.shape = conv_shape(shape, gate, 1), .x = maps, .weight = gate.weight, .y = weights});
    over_places.scale(x, places, shape.channels, weights, y, past_cache);
  }

  // dx may be x.
  void backward(const SpatialGate& gate, const SpatialGateGradients& gradients, const float* x,
                const float* dy, float* dx, bool last) const {
    const int64_t places = shape.places();
    const float* const weights = gate.gate + image * places;
    float* const d_logits = gradients.logits + image * places;
    over_places.dot(x, dy, places, shape.channels, weights, d_logits);
    if (dx == nullptr) return;
    float* const d_maps = scratch_floats(0, places * 2);
    conv_backward_data(
        {.shape = conv_shape(shape, gate, 1), .dy = d_logits, .weight = gate.weight, .dx = d_maps});
    over_places.backward({.places = places,
                          .channels = shape.channels,
                          .dy = dy,
                          .gate = weights,
                          .d_maps = d_maps,
                          .channel = gate.channel + image * places,
                          .dx = dx,
                          .past_cache = last && past_cache});
  }
};

// The gradients of the network: sums over images.
void channel_weights(const GateShape& s, const ChannelGate& gate, const ChannelGateGradients& gradients) {
  const int64_t n = s.channels, pools = gate.pools();
  gemm({.transpose_a = true,
        .m = gate.hidden,
        .n = n,
        .k = s.images * pools,
        .a = gradients.features,
        .lda = gate.hidden,
        .b = gate.pooled,
        .ldb = n,
        .c = gradients.weight1,
        .ldc = n});
  for (int64_t pool = 0; pool < pools; ++pool)
    gemm({.transpose_a = true,
          .m = n,
          .n = gate.hidden,
          .k = s.images,
          .a = gradients.logits,
          .lda = n,
          .b = gate.features + pool * gate.hidden,
          .ldb = pools * gate.hidden,
          .beta = pool == 0 ? 0.0f : 1.0f,
          .c = gradients.weight2,
          .ldc = gate.hidden});
  if (gradients.bias1 != nullptr)
    sum_axis(gradients.features, {1, s.images * pools, gate.hidden}, gradients.bias1);
  if (gradients.bias2 == nullptr) return;
  sum_axis(gradients.logits, {1, s.images, n}, gradients.bias2);
  for (int64_t c = 0; c < n; ++c) gradients.bias2[c] *= static_cast<float>(pools);
}

}  // namespace

void image_gate_forward(const ImageGateForward& args, Level level) {
  const GateShape& s = args.shape;
  const bool past_cache = writes_past_cache(s);
  for_each_image(s, [&](int64_t image) {
    const Pass pass{s, channel_gate_kernels(level), spatial_gate_kernels(level), image, past_cache};
    const float* x = args.x + image * s.image_floats();
    float* const y = args.y + image * s.image_floats();
    if (args.channel != nullptr) {
      float* const gated = args.spatial == nullptr ? y : between_gates(s);
      pass.forward(*args.channel, x, gated, args.spatial == nullptr);
      x = gated;
    }
    if (args.spatial != nullptr) pass.forward(*args.spatial, x, y);
  });
}

void image_gate_backward(const ImageGateBackward& args, Level level) {
  const GateShape& s = args.shape;
  const bool past_cache = writes_past_cache(s);
  for_each_image(s, [&](int64_t image) {
    const Pass pass{s, channel_gate_kernels(level), spatial_gate_kernels(level), image, past_cache};
    const float* const x = args.x + image * s.image_floats();
    const float* dy = args.dy + image * s.image_floats();
    float* const dx = args.dx == nullptr ? nullptr : args.dx + image * s.image_floats();
    if (args.channel == nullptr) return pass.backward(*args.spatial, *args.d_spatial, x, dy, dx, true);
    if (args.spatial != nullptr) {
      float* const between = between_gates(s);  // what went in, then its gradient
      pass.scale(*args.channel, x, nullptr, between, false);
      pass.backward(*args.spatial, *args.d_spatial, between, dy, between, false);
      dy = between;
    }
    pass.backward(*args.channel, *args.d_channel, x, dy, dx);
  });
  if (args.channel != nullptr) channel_weights(s, *args.channel, *args.d_channel);
  if (args.spatial != nullptr)
    conv_backward_weights({.shape = conv_shape(s, *args.spatial, s.images),
                           .x = args.spatial->maps,
                           .dy = args.d_spatial->logits,
                           .d_weight = args.d_spatial->weight});
}

}  // namespace fovea::kernels
