#include <cmath>

#include "kernels/gates/channel_gate.h"

namespace fovea::kernels::scalar {
namespace {

void pool(const float* x, int64_t places, int64_t channels, float* mean, float* max, int32_t* place) {
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    int64_t best = 0;
    for (int64_t p = 0; p < places; ++p) {
      sum += x[p * channels + c];
      if (x[p * channels + c] > x[best * channels + c]) best = p;
    }
    mean[c] = static_cast<float>(sum / static_cast<double>(places));
    if (max == nullptr) continue;
    max[c] = x[best * channels + c];
    place[c] = static_cast<int32_t>(best);
  }
}

void network(const ChannelGate& g, int64_t channels, int64_t image) {
  const int64_t first = image * g.pools(), end = first + g.pools();
  for (int64_t row = first; row < end; ++row)
    for (int64_t j = 0; j < g.hidden; ++j) {
      double sum = g.bias1 ? g.bias1[j] : 0;
      for (int64_t c = 0; c < channels; ++c)
        sum += double{g.weight1[j * channels + c]} * g.pooled[row * channels + c];
      g.features[row * g.hidden + j] = static_cast<float>(sum < 0 ? 0 : sum);
    }
  for (int64_t c = 0; c < channels; ++c) {
    double logit = 0;
    for (int64_t row = first; row < end; ++row) {
      logit += g.bias2 ? g.bias2[c] : 0;
      for (int64_t j = 0; j < g.hidden; ++j)
        logit += double{g.weight2[c * g.hidden + j]} * g.features[row * g.hidden + j];
    }
    g.gate[image * channels + c] = static_cast<float>(1 / (1 + std::exp(-logit)));
  }
}

void scale(const ChannelGateKernels::Scale& all) {
  for (int64_t p = 0; p < all.places; ++p)
    for (int64_t c = 0; c < all.channels; ++c) {
      const int64_t at = p * all.channels + c;
      all.y[at] = all.x[at] * all.factor[c] + (all.shift ? all.shift[c] : 0);
    }
}

void dot(const float* x, const float* dy, int64_t places, int64_t channels, float* sums) {
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t p = 0; p < places; ++p) sum += double{x[p * channels + c]} * dy[p * channels + c];
    sums[c] = static_cast<float>(sum);
  }
}

void network_backward(const ChannelGate& g, const ChannelGateGradients& gradients, int64_t channels,
                      int64_t image, const float* d_gate, float* d_pooled) {
  float* const d_logits = gradients.logits + image * channels;
  for (int64_t c = 0; c < channels; ++c) {
    const float gate = g.gate[image * channels + c];
    d_logits[c] = d_gate[c] * gate * (1 - gate);
  }
  for (int64_t pool = 0; pool < g.pools(); ++pool) {
    const int64_t row = image * g.pools() + pool;
    float* const d_features = gradients.features + row * g.hidden;
    for (int64_t j = 0; j < g.hidden; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c) sum += double{d_logits[c]} * g.weight2[c * g.hidden + j];
      d_features[j] = g.features[row * g.hidden + j] > 0 ? static_cast<float>(sum) : 0;
    }
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < g.hidden; ++j) sum += double{d_features[j]} * g.weight1[j * channels + c];
      d_pooled[pool * channels + c] = static_cast<float>(sum);
    }
  }
}

}  // namespace

extern const ChannelGateKernels channel_gate_table;
const ChannelGateKernels channel_gate_table{
    .pool = pool, .network = network, .scale = scale, .dot = dot, .network_backward = network_backward};

}  // namespace fovea::kernels::scalar
