// Segmentation whose two tasks are kept apart (after Lin, Shi and Zou 2017, "Fully convolutional network with task
// partitioning for inshore ship detection"): a deep branch finds where the ends of ships are, a shallow one separates
// bow from stern, and the deep branch's map gates the shallow one's loss.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <tuple>

#include "models/size_ranges.h"
#include "nn/conv.h"
#include "nn/upsample.h"

namespace fovea::models {

struct PartitionConfig {
  int64_t width = 16;  // features of the trunk; the deep branch has twice and four times as many
  std::string branches = "gated";
  std::string gate = "schedule";
  int64_t gate_steps = 400;
  float end_weight = 4;

  // Whether `fovea explain` has maps to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = PartitionConfig;
    return std::tuple{
        Sized{"width", &T::width, "features of the trunk", kWidths},
        Field{
            "branches", &T::branches,
            "gated (the coarse map gates the loss of the bow and stern map), ungated (two branches, each trained "
            "everywhere) or single (one branch for all classes)"},
        Field{
            "gate", &T::gate,
            "branches gated: where the mask of the fine loss comes from: labels, prediction, or schedule (from labels "
            "at first, later from the prediction)"},
        Sized{"gate_steps", &T::gate_steps,
              "gate schedule: training steps until the mask comes from the prediction alone",
              between(1, 1e7)},
        Sized{"end_weight", &T::end_weight,
              "weight of bow and stern cells in the loss; other cells have weight 1", between(0.001, 1000)}};
  }
};

// Labels of a batch, a number for each cell: coarse end, body, sea or land (data::CoarseClass); fine bow or stern
// (data::FineClass), or data::kIgnoredLabel.
struct PartitionLabels {
  std::span<const int32_t> coarse, fine;
};

// A convolution without bias, batch norm, ReLU. Children: conv, norm.
class ConvNormRelu : public nn::Module {
 public:
  ConvNormRelu(int64_t channels, int64_t filters, Rng& rng, const Conv2dOptions& options);
  Var operator()(const Var& x, const nn::Context& context) const;

 private:
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
};

// Parameters: trunk.0, trunk.1 (half the size); deep.0 ... deep.4 (down to an eighth); up.conv, up.norm (a transposed
// convolution back to a quarter, which deep.1 is added to), coarse; and of two branches shallow.0, shallow.1, fine.
// Buffer: steps [1], the training steps so far, which the schedule of the gate follows.
class Partition : public nn::Module {
 public:
  // Pixels of a cell's side, and what the sides of a picture must be a multiple of.
  static constexpr int64_t kStride = 2, kSideUnit = 8;

  // Throws Error on a config that makes no sense.
  Partition(const PartitionConfig& config, Rng& rng);

  struct Logits {
    Var coarse;  // [N, H / 2, W / 2, 4]: end, body, sea, land; of a single branch 5: bow, stern, body, sea, land
    Var fine;  // [N, H / 2, W / 2, 2]: bow, stern; ungated 3: and neither; undefined for a single branch
  };
  // x: [N, H, W, 3], H and W multiples of 8.
  Logits logits(const Var& x, const nn::Context& context) const;

  // What training minimises: the coarse loss plus the fine one, which the mask gates. Counts a step while
  // context.training.
  Var loss(const Var& x, const PartitionLabels& labels, const nn::Context& context) const;

  // What the maps say of every cell, whatever the branches: probabilities of [N, H / 2, W / 2, 5]: bow, stern, body,
  // sea, land. Gated: bow and stern share the probability of an end as the fine branch says.
  Tensor probabilities(const Logits& logits) const;

  // How much of the gate is the prediction after `steps` training steps, 0 to 1.
  static double prediction_share(const PartitionConfig& config, double steps);

  const PartitionConfig& config() const { return config_; }

 private:
  // The weight of every cell's fine loss.
  Tensor fine_mask(const Logits& logits, const PartitionLabels& labels) const;

  PartitionConfig config_;
  std::vector<std::unique_ptr<ConvNormRelu>> trunk_, deep_, shallow_;
  nn::ConvTranspose2d up_;
  nn::BatchNorm2d up_norm_;
  nn::Conv2d coarse_;
  std::unique_ptr<nn::Conv2d> fine_;
  Var steps_;
};

}  // namespace fovea::models
