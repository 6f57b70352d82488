// Attention over the frames of a clip, or over the instances of a bag: which of them matter, and their weighted mean.
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
enum class FramePooling {
  dot,       // softmax over frames of w . h / sqrt(d)
  additive,  // softmax of w . tanh(V h)                       (Ilse et al. 2018, "attention")
  gated,     // softmax of w . (tanh(V h) * sigmoid(U h))      (Ilse et al. 2018, "gated attention")
  mean,      // all frames have the same weight
  max,       // no weights: the largest of every feature
};
// From "dot", "additive", ...; throws Error on another name.
FramePooling frame_pooling_named(const std::string& name);

struct TemporalAttentionOptions {
  int64_t width = 0;  // features of a frame
  FramePooling pooling = FramePooling::gated;
  int64_t hidden = 128;  // additive, gated: rows of V and U
  // How scores become weights: soft, hard, gumbel(1), sparsemax, top_k(4), sigmoid, identity, as of AttentionPooling.
  // Mean and max have soft alone.
  std::string selection = "soft";
};

struct PooledFrames {
  Var out;         // [clips, d]
  Tensor weights;  // [frames]: of each frame in its clip, if requested; undefined for max
};

// Which frames of padded clips exist. Both empty: all.
struct Frames {
  std::span<const int64_t> lengths = {};  // [B]: the first so many
  std::span<const uint8_t> present = {};  // [B T]: 0 where a frame is missing
};

// Parameters: query [d] (dot: zeros at first, so that training begins with the plain mean; additive and gated: [hidden]),
// v.weight and v.bias (additive, gated), u.weight and u.bias (gated). Mean and max have none.
//
// A clip without frames gives 0. Observers see the weights under `name`: a query for each clip, a key for each existing
// frame of all clips.
class TemporalAttention : public Module {
 public:
  TemporalAttention(const TemporalAttentionOptions& options, Rng& rng);

  // Clips of any lengths, one after the other. x: [frames, d]; lengths: of the clips, which add up to frames. A model that
  // trains with a hard selection sets Context::rows_of_example before (nn/choices.h).
  PooledFrames operator()(const Var& x, std::span<const int64_t> lengths, Context& context,
                          bool weights = false, std::string_view name = {}) const;
  // The same at use.
  PooledFrames operator()(const Var& x, std::span<const int64_t> lengths, bool weights = false,
                          std::string_view name = {}) const;
  // Padded clips. x: [B, T, d] -> [B, d]; or [B, T, H, W, d] -> [B, H, W, d], the score of a frame computed from the mean
  // of its places. A missing frame has weight 0 and gradient 0 exactly, whatever it holds. Nothing is drawn.
  Var operator()(const Var& x, const Frames& frames = {}, std::string_view name = {}) const;

 private:
  PooledFrames pool(const Var& features, const Var& values, std::span<const int64_t> lengths,
                    Context& context, bool weights, std::string_view name) const;
  // What meets the query. x: [frames, d]
  Var keys_of(const Var& x) const;
  // The same query for all: [1, 1, clips, width of a key].
  Var queries(int64_t clips) const;

  TemporalAttentionOptions options_;
  Selection selection_;
  Var query_;
  std::unique_ptr<Linear> v_, u_;
};

}  // namespace fovea::nn
