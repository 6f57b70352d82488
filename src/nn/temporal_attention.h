// Attention over the frames of a clip, or over the instances of a bag: which of them matter, and their weighted mean.
// Clips have any lengths and stand one after the other, without padding; TemporalAttention (nn/gates.h) is for padded
// ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "attention/attention.h"
#include "nn/layers.h"

namespace fovea::nn {

// How frames become one vector. h is a frame's features, w a learned vector.
enum class FrameWeights {
  dot,       // softmax over frames of w . h / sqrt(d)
  additive,  // softmax of w . tanh(V h)                       (Ilse et al. 2018, "attention")
  gated,     // softmax of w . (tanh(V h) * sigmoid(U h))      (Ilse et al. 2018, "gated attention")
  mean,      // every frame alike
  max,       // no weights: the largest of every feature
};
// From "dot", "additive", ...; throws Error on another name.
FrameWeights frame_weights_named(const std::string& name);

struct FramePoolingOptions {
  int64_t width = 0;  // of a frame's features
  FrameWeights kind = FrameWeights::gated;
  int64_t hidden = 128;  // additive, gated: rows of V and U
};

struct PooledFrames {
  Var out;         // [clips, d]
  Tensor weights;  // [frames]: of each frame in its clip, where they were asked for; undefined for max
};

// Parameters: query [d] (dot: zeros at first, so that training begins with the plain mean; additive and gated: [hidden]),
// v.weight and v.bias (additive, gated), u.weight and u.bias (gated). Mean and max have none.
class FramePooling : public Module {
 public:
  FramePooling(const FramePoolingOptions& options, Rng& rng);

  // x: [frames, d], clip after clip; lengths add up to frames. A clip without frames gives 0. Shown under `name`: a
  // query for each clip, a key for each frame of all.
  PooledFrames operator()(const Var& x, std::span<const int64_t> lengths, bool weights = false,
                          std::string_view name = {}) const;

 private:
  // What meets the query. x: [frames, d]
  Var keys_of(const Var& x) const;
  // The same query for all: [1, 1, clips, width of a key].
  Var queries(int64_t clips) const;

  FramePoolingOptions options_;
  Var query_;
  std::unique_ptr<Linear> v_, u_;
};

}  // namespace fovea::nn
