#include "models/clip.h"

#include "autograd/ops.h"
#include "models/class_loss.h"

namespace fovea::models {
namespace {

const ClipConfig& checked(const ClipConfig& c) {
  check_ranges(c, "clip classifier");
  require(c.classes > 0, "clip classifier: classes must be above 0");
  return c;
}

int64_t second_filters(const ClipConfig& c) {
  return c.filters * 5 / 2;
}

// Of a side, after two convolutions of 5 x 5 and two poolings.
int64_t places(int64_t side) {
  return ((side - 4) / 2 - 4) / 2;
}

}  // namespace

ClipClassifier::ClipClassifier(const ClipConfig& config, Rng& rng)
    : config_(checked(config)),
      conv1_(config.channels, config.filters, 5, rng),
      conv2_(config.filters, second_filters(config), 5, rng),
      fc_(places(config.height) * places(config.width) * second_filters(config), config.features, rng),
      pooling_({.width = config.features,
                .pooling = nn::frame_pooling_named(config.pooling),
                .hidden = config.hidden,
                .selection = config.selection},
               rng),
      output_(config.features, config.classes, rng) {
  add_child("conv1", conv1_);
  add_child("conv2", conv2_);
  add_child("fc", fc_);
  add_child("pooling", pooling_);
  add_child("output", output_);
}

Var ClipClassifier::features(const Tensor& frames, nn::Context& context) const {
  require(frames.rank() == 4 && frames.size(1) == config_.height && frames.size(2) == config_.width &&
              frames.size(3) == config_.channels,
          "clip classifier: got frames of shape ", frames.shape(), ", wanted [frames, ", config_.height, ", ",
          config_.width, ", ", config_.channels, "]");
  const Var low = max_pool2d(relu(conv1_(Var(frames))));
  const Var high = max_pool2d(relu(conv2_(low)));
  const Var all = fc_(reshape(high, {frames.size(0), -1}), Activation::relu);
  const float rate = context.rate(config_.dropout);
  return rate > 0 ? dropout(all, rate, context.next_seed()) : all;
}

Var ClipClassifier::loss(const Tensor& frames, std::span<const int64_t> lengths,
                         std::span<const int32_t> labels, nn::Context& context) const {
  context.rows_of_example.assign(lengths.size(), 1);
  const Var seen = features(frames, context);
  const Var logits = output_(pooling_(seen, lengths, context).out);
  return class_loss(logits, labels, 0, context);
}

ClipResult ClipClassifier::classify(const Tensor& frames, std::span<const int64_t> lengths) const {
  const NoGrad no_grad;
  nn::Context context;
  const nn::PooledFrames pooled =
      pooling_(features(frames, context), lengths, config_.has_attention(), "frames");
  return {output_(pooled.out).value().contiguous(),
          pooled.weights.defined() ? pooled.weights.to_vector() : std::vector<float>{}};
}

}  // namespace fovea::models
