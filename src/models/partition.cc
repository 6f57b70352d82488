// The task-partitioned segmentation network: its branches, the mask of the fine task, and the gated losses.
#include "models/partition.h"

#include <algorithm>
#include <vector>

#include "autograd/ops.h"
#include "autograd/ops_loss.h"
#include "data/ships.h"
#include "nn/gated_loss.h"
#include "nn/init.h"
#include "nn/norm_in_place.h"

namespace fovea::models {
namespace {

constexpr auto kEnd = static_cast<int32_t>(data::CoarseClass::end);
// Classes of a single branch: bow, stern, then what is no end.
constexpr int64_t kCoarseClasses = 4, kSingleClasses = 5;

const PartitionConfig& checked(const PartitionConfig& c) {
  check_ranges(c, "partition");
  require(c.branches == "gated" || c.branches == "ungated" || c.branches == "single", "partition: branches '",
          c.branches, "', wanted gated, ungated or single");
  require(c.gate == "schedule" || c.gate == "labels" || c.gate == "prediction", "partition: gate '", c.gate,
          "', wanted schedule, labels or prediction");
  const PartitionConfig usual;
  require(c.branches == "gated" || c.gate == usual.gate,
          "partition: gate applies to gated branches only; they are ", c.branches);
  require((c.branches == "gated" && c.gate == "schedule") || c.gate_steps == usual.gate_steps,
          "partition: gate_steps applies to gated branches with --gate schedule only");
  return c;
}

Conv2dOptions dilated(int64_t dilation) {
  return {.padding = dilation, .dilation = dilation};
}
const Conv2dOptions kHalving{.stride = 2, .padding = 1};

// The class of a single branch: the end's own, or the coarse class moved by one.
int32_t single_label(int32_t coarse, int32_t fine) {
  return coarse == kEnd ? fine : coarse + 1;
}

// The mean cross-entropy of cells, those of ends weighted.
Var weighted_loss(const Var& logits, std::span<const int32_t> labels, std::span<const int32_t> coarse,
                  float end_weight) {
  const Tensor weights(Shape{static_cast<int64_t>(labels.size())});
  for (size_t i = 0; i < labels.size(); ++i) weights.data()[i] = coarse[i] == kEnd ? end_weight : 1;
  return nn::gated_loss(cross_entropy(logits, labels, {.reduction = Reduction::none}), weights);
}

}  // namespace

ConvNormRelu::ConvNormRelu(int64_t channels, int64_t filters, Rng& rng, const Conv2dOptions& options)
    : conv_(channels, filters, 3, rng, options, false), norm_(filters) {
  if (nn::parameters_are_drawn()) conv_.weight.set_value(nn::kaiming_normal(conv_.weight.shape(), rng));
  add_child("conv", conv_);
  add_child("norm", norm_);
}

Var ConvNormRelu::operator()(const Var& x, const nn::Context& context) const {
  return nn::norm_in_place(norm_, conv_(x), context, NormActivation::relu);
}

Partition::Partition(const PartitionConfig& config, Rng& rng)
    : config_(checked(config)),
      up_(4 * config.width, 2 * config.width, 4, rng, {.stride = 2, .padding = 1}, false),
      up_norm_(2 * config.width),
      coarse_(2 * config.width, config.branches == "single" ? kSingleClasses : kCoarseClasses, 1, rng) {
  const int64_t w = config.width;
  const auto add = [&](auto& list, const char* name, int64_t in, int64_t out, const Conv2dOptions& options) {
    list.push_back(std::make_unique<ConvNormRelu>(in, out, rng, options));
    add_child(message(name, ".", list.size() - 1), *list.back());
  };
  add(trunk_, "trunk", 3, w, kHalving);
  add(trunk_, "trunk", w, w, dilated(1));
  add(deep_, "deep", w, 2 * w, kHalving);
  add(deep_, "deep", 2 * w, 2 * w, dilated(1));
  add(deep_, "deep", 2 * w, 4 * w, kHalving);
  add(deep_, "deep", 4 * w, 4 * w, dilated(2));
  add(deep_, "deep", 4 * w, 4 * w, dilated(4));
  add_child("up.conv", up_);
  add_child("up.norm", up_norm_);
  add_child("coarse", coarse_);
  if (config.branches != "single") {
    // Sees 31 pixels: enough for the taper of a bow.
    add(shallow_, "shallow", w, 2 * w, dilated(2));
    add(shallow_, "shallow", 2 * w, 2 * w, dilated(4));
    fine_ = std::make_unique<nn::Conv2d>(2 * w, config.branches == "gated" ? 2 : 3, 1, rng);
    add_child("fine", *fine_);
  }
  steps_ = add_buffer("steps", nn::constant({1}, 0));
}

Partition::Logits Partition::logits(const Var& x, const nn::Context& context) const {
  require(x.rank() == 4 && x.size(3) == 3 && x.size(1) % kSideUnit == 0 && x.size(2) % kSideUnit == 0,
          "partition: got pictures of shape ", x.shape(),
          ", wanted [pictures, height, width, 3] with sides that are multiples of ", kSideUnit);
  const Size2d cells{x.size(1) / kStride, x.size(2) / kStride};
  Var shared = x;
  for (const auto& layer : trunk_) shared = (*layer)(shared, context);
  const Var quarter = (*deep_[1])((*deep_[0])(shared, context), context);
  Var deep = quarter;
  for (size_t i = 2; i < deep_.size(); ++i) deep = (*deep_[i])(deep, context);
  const Var up = nn::norm_in_place(up_norm_, up_(deep), context, NormActivation::relu) + quarter;
  Logits logits{resize2d(coarse_(up), cells), {}};
  if (fine_ == nullptr) return logits;
  Var fine = shared;
  for (const auto& layer : shallow_) fine = (*layer)(fine, context);
  logits.fine = (*fine_)(fine);
  return logits;
}

double Partition::prediction_share(const PartitionConfig& config, double steps) {
  if (config.gate == "labels") return 0;
  if (config.gate == "prediction") return 1;
  return std::min(1.0, steps / static_cast<double>(config.gate_steps));
}

Tensor Partition::fine_mask(const Logits& logits, const PartitionLabels& labels) const {
  const auto share = static_cast<float>(prediction_share(config_, double{steps_.value().item()}));
  const Tensor scores = logits.coarse.value().contiguous();
  const Tensor mask(Shape{static_cast<int64_t>(labels.coarse.size())});
  for (size_t i = 0; i < labels.coarse.size(); ++i) {
    const float* cell = scores.data() + i * kCoarseClasses;
    const bool predicted = std::max_element(cell, cell + kCoarseClasses) - cell == kEnd;
    const bool labelled = labels.coarse[i] == kEnd;
    // A picture without ships has no bow and no stern to learn.
    mask.data()[i] =
        labels.fine[i] == data::kIgnoredLabel ? 0 : (labelled ? 1 - share : 0) + (predicted ? share : 0);
  }
  return mask;
}

Var Partition::loss(const Var& x, const PartitionLabels& labels, const nn::Context& context) const {
  const Logits scores = logits(x, context);
  const auto cells = static_cast<size_t>(scores.coarse.count() / scores.coarse.size(3));
  require(labels.coarse.size() == cells && labels.fine.size() == cells, "partition: got ",
          labels.coarse.size(), " coarse and ", labels.fine.size(), " fine labels for ", cells, " cells");
  std::vector<int32_t> own(labels.coarse.begin(), labels.coarse.end());
  if (config_.branches == "single")
    for (size_t i = 0; i < cells; ++i) own[i] = single_label(labels.coarse[i], labels.fine[i]);
  const Var coarse = weighted_loss(scores.coarse, own, labels.coarse, config_.end_weight);
  if (config_.branches == "single") return coarse;
  if (config_.branches == "ungated") {
    std::vector<int32_t> fine(cells, 2);  // neither bow nor stern
    for (size_t i = 0; i < cells; ++i)
      if (labels.coarse[i] == kEnd) fine[i] = labels.fine[i];
    return coarse + weighted_loss(scores.fine, fine, labels.coarse, config_.end_weight);
  }
  const Tensor mask = fine_mask(scores, labels);
  if (context.training) steps_.value().data()[0] += 1;
  return coarse +
         nn::gated_loss(cross_entropy(scores.fine, labels.fine, {.reduction = Reduction::none}), mask);
}

Tensor Partition::probabilities(const Logits& logits) const {
  const Tensor coarse = softmax(logits.coarse).value().contiguous();
  if (config_.branches == "single") return coarse;
  const Tensor fine = softmax(logits.fine).value().contiguous();
  const int64_t classes = fine.size(3), cells = fine.count() / classes;
  const Tensor all(Shape{fine.size(0), fine.size(1), fine.size(2), kSingleClasses});
  for (int64_t i = 0; i < cells; ++i) {
    const float *c = coarse.data() + i * kCoarseClasses, *f = fine.data() + i * classes;
    float* to = all.data() + i * kSingleClasses;
    // Gated, the ends are where the coarse map says; ungated, where the fine branch itself says.
    const float end = classes == 2 ? c[kEnd] : 1;
    to[0] = end * f[0];
    to[1] = end * f[1];
    const float rest = 1 - to[0] - to[1], others = std::max(1e-6f, 1 - c[kEnd]);
    for (int64_t k = 1; k < kCoarseClasses; ++k) to[k + 1] = rest * c[k] / others;
  }
  return all;
}

}  // namespace fovea::models
