#include <cmath>

#include "kernels/gates/spatial_gate.h"

namespace fovea::kernels::scalar {
namespace {

void pool(const float* x, int64_t places, int64_t channels, float* maps, int32_t* channel) {
  for (int64_t p = 0; p < places; ++p) {
    const float* const own = x + p * channels;
    double sum = 0;
    int64_t best = 0;
    for (int64_t c = 0; c < channels; ++c) {
      sum += own[c];
      if (own[c] > own[best]) best = c;
    }
    maps[2 * p] = static_cast<float>(sum / static_cast<double>(channels));
    maps[2 * p + 1] = own[best];
    channel[p] = static_cast<int32_t>(best);
  }
}

void scale(const float* x, int64_t places, int64_t channels, float* gate, float* y, bool /*past_cache*/) {
  for (int64_t p = 0; p < places; ++p) {
    gate[p] = 1 / (1 + std::exp(-gate[p]));
    for (int64_t c = 0; c < channels; ++c) y[p * channels + c] = x[p * channels + c] * gate[p];
  }
}

void dot(const float* x, const float* dy, int64_t places, int64_t channels, const float* gate,
         float* d_logits) {
  for (int64_t p = 0; p < places; ++p) {
    double sum = 0;
    for (int64_t c = 0; c < channels; ++c) sum += double{x[p * channels + c]} * dy[p * channels + c];
    d_logits[p] = static_cast<float>(sum) * gate[p] * (1 - gate[p]);
  }
}

void backward(const SpatialGateKernels::Backward& args) {
  for (int64_t p = 0; p < args.places; ++p) {
    const float d_mean = args.d_maps[2 * p] / static_cast<float>(args.channels),
                d_max = args.d_maps[2 * p + 1];
    for (int64_t c = 0; c < args.channels; ++c) {
      const int64_t at = p * args.channels + c;
      args.dx[at] = args.dy[at] * args.gate[p] + d_mean + (c == args.channel[p] ? d_max : 0);
    }
  }
}

}  // namespace

extern const SpatialGateKernels spatial_gate_table;
const SpatialGateKernels spatial_gate_table{.pool = pool, .scale = scale, .dot = dot, .backward = backward};

}  // namespace fovea::kernels::scalar
