// Squeeze-and-excitation, CBAM and selective kernels, and how they report their weights to observers.
#include "nn/gates.h"

#include <algorithm>
#include <string>

#include "autograd/ops.h"
#include "autograd/ops_gates.h"
#include "nn/init.h"
#include "nn/norm_in_place.h"

namespace fovea::nn {
namespace {

// Shows weights [B, queries, keys] to this thread's observer.
void show(std::string_view name, const AttentionSite& site, const Selection& selection,
          const Tensor& weights) {
  AttentionObserver* const observer = attention_observer();
  if (observer == nullptr) return;
  const AttentionSpec spec{.score = dot(), .selection = selection};
  AttentionSite gate = site;
  gate.kind = AttentionSite::Kind::gate;
  const int64_t batch = weights.size(0), queries = weights.size(1), keys = weights.size(2);
  const AttentionObserver::Call call{name, spec, batch, 1, queries, keys, gate};
  const AttentionObserver::Capture capture = observer->capture(call);
  if (capture.heads.empty() || capture.rows.empty()) return;
  const auto rows = static_cast<int64_t>(capture.rows.size());
  const Tensor shown(Shape{batch, static_cast<int64_t>(capture.heads.size()), rows, keys});
  for (const int32_t head : capture.heads)
    require(head == 0, "gates: weights of head ", head, " were requested; there is one, 0");
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = capture.rows[static_cast<size_t>(i)];
    require(row >= 0 && row < queries, "gates: weights of row ", row, " were requested; there are ", queries);
    for (int64_t h = 0; h < shown.size(1); ++h)
      shown.narrow(1, h, 1).narrow(2, i, 1).copy_from(weights.narrow(1, row, 1).reshape({batch, 1, 1, keys}));
  }
  observer->observe(call, capture, {shown, {}});
}

int64_t squeezed(int64_t channels, int64_t reduction) {
  require(channels > 0 && reduction > 0, "gates: got ", channels, " channels and a reduction of ", reduction,
          ", wanted both above 0");
  return std::max<int64_t>(1, channels / reduction);
}

void check_image(const char* layer, const Var& x, int64_t channels) {
  require(x.rank() == 4 && x.size(3) == channels, layer, ": got input of shape ", x.shape(),
          ", wanted [images, height, width, ", channels, "]");
}

Tensor one_query(const Tensor& gate) {
  return gate.reshape({gate.size(0), 1, gate.count() / std::max<int64_t>(1, gate.size(0))});
}

ChannelGate channel_gate(const Linear& fc1, const Linear& fc2, bool with_max) {
  return {fc1.weight, fc1.bias, fc2.weight, fc2.bias, with_max};
}

void show_channels(std::string_view name, const AttentionSite& site, const GatedImages& gated) {
  show(name, site, sigmoid_selection(), one_query(gated.channel));
}

void show_places(std::string_view name, const AttentionSite& site, const GatedImages& gated) {
  AttentionSite places = site;
  places.grid_height = gated.spatial.size(1);
  places.grid_width = gated.spatial.size(2);
  show(name, places, sigmoid_selection(), one_query(gated.spatial));
}

}  // namespace

SqueezeExcite::SqueezeExcite(int64_t channels, int64_t reduction, Rng& rng, bool with_bias)
    : fc1(channels, squeezed(channels, reduction), rng, with_bias),
      fc2(squeezed(channels, reduction), channels, rng, with_bias) {
  add_child("fc1", fc1);
  add_child("fc2", fc2);
}

Var SqueezeExcite::operator()(const Var& x, std::string_view name, const AttentionSite& site) const {
  check_image("squeeze and excitation", x, fc1.weight.size(1));
  const GatedImages gated = gate_images(x, channel_gate(fc1, fc2, false));
  show_channels(name, site, gated);
  return gated.y;
}

ChannelAttention::ChannelAttention(int64_t channels, int64_t reduction, Rng& rng, bool with_bias)
    : fc1(channels, squeezed(channels, reduction), rng, with_bias),
      fc2(squeezed(channels, reduction), channels, rng, with_bias) {
  add_child("fc1", fc1);
  add_child("fc2", fc2);
}

Var ChannelAttention::operator()(const Var& x, std::string_view name, const AttentionSite& site) const {
  check_image("channel attention", x, fc1.weight.size(1));
  const GatedImages gated = gate_images(x, channel_gate(fc1, fc2, true));
  show_channels(name, site, gated);
  return gated.y;
}

SpatialAttention::SpatialAttention(Rng& rng, int64_t kernel)
    : conv(2, 1, kernel, rng, {.padding = kernel / 2}, false) {
  require(kernel > 0 && kernel % 2 == 1, "spatial attention: got a kernel of ", kernel,
          ", wanted an odd number");
  add_child("conv", conv);
}

Var SpatialAttention::operator()(const Var& x, std::string_view name, const AttentionSite& site) const {
  require(x.rank() == 4, "spatial attention: got input of shape ", x.shape(),
          ", wanted [images, height, width, channels]");
  const GatedImages gated = gate_images(x, {}, {conv.weight});
  show_places(name, site, gated);
  return gated.y;
}

Cbam::Cbam(int64_t channels, int64_t reduction, Rng& rng, const CbamOptions& options)
    : channel(channels, reduction, rng, options.bias), spatial(rng, options.kernel) {
  add_child("channel", channel);
  add_child("spatial", spatial);
}

Var Cbam::operator()(const Var& x, std::string_view name, const AttentionSite& site) const {
  check_image("CBAM", x, channel.fc1.weight.size(1));
  const GatedImages gated =
      gate_images(x, channel_gate(channel.fc1, channel.fc2, true), {spatial.conv.weight});
  if (attention_observer() == nullptr) return gated.y;
  show_channels(std::string(name) + ".channel", site, gated);
  show_places(std::string(name) + ".spatial", site, gated);
  return gated.y;
}

SelectiveKernel::Branch::Branch(const SelectiveKernelOptions& o, int64_t dilation, Rng& rng)
    : conv(o.channels, o.filters, 3, rng,
           {.stride = o.stride, .padding = dilation, .dilation = dilation, .groups = o.groups}, false),
      norm(o.filters) {
  add_child("conv", conv);
  add_child("norm", norm);
}

namespace {

int64_t descriptor_width(const SelectiveKernelOptions& o) {
  require(o.branches >= 2, "selective kernel: got ", o.branches, " branches, wanted at least 2");
  require(o.least > 0, "selective kernel: got a descriptor of at least ", o.least, ", wanted more than 0");
  return std::max(squeezed(o.filters, o.reduction), o.least);
}

}  // namespace

SelectiveKernel::SelectiveKernel(const SelectiveKernelOptions& options, Rng& rng)
    : fc_(options.filters, descriptor_width(options), rng, false), norm_(descriptor_width(options)) {
  for (int64_t i = 0; i < options.branches; ++i) {
    branches_.push_back(std::make_unique<Branch>(options, i + 1, rng));
    add_child("branches." + std::to_string(i), *branches_.back());
  }
  add_child("fc", fc_);
  add_child("norm", norm_);
  for (int64_t i = 0; i < options.branches; ++i) {
    select_.push_back(std::make_unique<Linear>(descriptor_width(options), options.filters, rng));
    add_child("select." + std::to_string(i), *select_.back());
  }
}

Var SelectiveKernel::operator()(const Var& x, const Context& context, std::string_view name,
                                const AttentionSite& site) const {
  std::vector<Var> seen;
  Var together;
  for (const auto& branch : branches_) {
    seen.push_back(norm_in_place(branch->norm, branch->conv(x), context, NormActivation::relu));
    together = together.defined() ? together + seen.back() : seen.back();
  }
  const Var descriptor = norm_(fc_(global_avg_pool2d(together)), context, NormActivation::relu);
  std::vector<Var> logits;  // [B, C, 1] each
  for (const auto& select : select_)
    logits.push_back(reshape((*select)(descriptor), {x.size(0), select->weight.size(0), 1}));
  const Var weights = softmax(concat(logits, 2));
  show(name, site, soft(), weights.value());
  Var out;
  for (size_t i = 0; i < seen.size(); ++i) {
    const Var share = slice(weights, 2, static_cast<int64_t>(i), 1);
    const Var part = seen[i] * reshape(share, {x.size(0), 1, 1, weights.size(1)});
    out = out.defined() ? out + part : part;
  }
  return out;
}

}  // namespace fovea::nn
