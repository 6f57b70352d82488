// A classifier of clips and bags: a small convolutional network for every frame, attention over the frames, one label
// for the whole (attention-based multiple instance learning, Ilse et al. 2018).
#pragma once

#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/size_ranges.h"
#include "nn/conv.h"
#include "nn/temporal_attention.h"

namespace fovea::models {

struct ClipConfig {
  int64_t classes = 0;
  int64_t channels = 1;
  int64_t height = 28, width = 28;
  std::string pooling = "gated";
  std::string selection = "soft";
  int64_t filters = 20;
  int64_t features = 128;
  int64_t hidden = 64;
  float dropout = 0;

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return pooling != "mean" && pooling != "max"; }

  static constexpr auto fields() {
    using T = ClipConfig;
    return std::tuple{
        Sized{"classes", &T::classes, "labels of a clip", between(0, 1e6)},
        Sized{"channels", &T::channels, "channels of a frame: 1 for grey, 3 for colours", between(1, 1024)},
        Sized{"height", &T::height, "rows of a frame", between(16, 1024)},
        Sized{"width", &T::width, "columns of a frame", between(16, 1024)},
        Field{
            "pooling", &T::pooling,
            "how the features h of frames become one vector: attention with the score gated (w . tanh(V h) * "
            "sigmoid(U h)), additive (w . tanh(V h)) or dot (w . h); or, without attention, mean or max"},
        Field{
            "selection", &T::selection,
            "how the scores of frames become weights: soft, hard (one frame, trained by REINFORCE), gumbel(1), "
            "sparsemax, top_k(4), sigmoid or identity"},
        Sized{"filters", &T::filters,
              "filters of the first 5 x 5 convolution; the second has 2.5 times as many", kWidths},
        Sized{"features", &T::features, "features of a frame", kWidths},
        Sized{"hidden", &T::hidden, "gated, additive: features of the hidden layer of the score", kWidths},
        Sized{"dropout", &T::dropout, "dropout rate on the features of frames", probability()}};
  }
};

// What a model makes of clips at use.
struct ClipResult {
  Tensor logits;               // [clips, classes]
  std::vector<float> weights;  // [frames]: of each frame in its clip; empty for mean and max
};

// A frame goes through conv1 5 x 5, relu, max pooling 2 x 2, conv2 5 x 5, relu, max pooling 2 x 2 (LeNet, LeCun et al.
// 1998) and fc, relu; then pooling over the frames of a clip, and output. Parameters: conv1, conv2, fc
// [features, places filters], pooling as nn::TemporalAttention names them, output [classes, features].
class ClipClassifier : public nn::Module {
 public:
  // Throws Error on a config that makes no sense.
  ClipClassifier(const ClipConfig& config, Rng& rng);

  // frames: [frames, height, width, channels], clip after clip; lengths: of the clips. Mean cross-entropy; labels: one
  // class for every clip.
  Var loss(const Tensor& frames, std::span<const int64_t> lengths, std::span<const int32_t> labels,
           nn::Context& context) const;
  // At use, without the tape.
  ClipResult classify(const Tensor& frames, std::span<const int64_t> lengths) const;

  const ClipConfig& config() const { return config_; }

 private:
  Var features(const Tensor& frames, nn::Context& context) const;

  ClipConfig config_;
  nn::Conv2d conv1_, conv2_;
  nn::Linear fc_;
  nn::TemporalAttention pooling_;
  nn::Linear output_;
};

}  // namespace fovea::models
