#include "models/resnet.h"

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/norm_in_place.h"

namespace fovea::models {
namespace {

const ResNetConfig& checked(const ResNetConfig& c) {
  check_ranges(c, "image classifier");
  require(c.classes > 0, "image classifier: classes must be above 0");
  require(c.depth >= 8 && (c.depth - 2) % 6 == 0, "image classifier: depth is ", c.depth,
          ", wanted 8, 14, 20, ... (6 n + 2)");
  require(c.gate == "none" || c.gate == "se" || c.gate == "cbam" || c.gate == "sk",
          "image classifier: gate '", c.gate, "', wanted none, se, cbam or sk");
  const ResNetConfig usual;
  require(c.gate_kernel % 2 == 1, "image classifier: gate_kernel is ", c.gate_kernel,
          ", wanted an odd number such as 3 or 7");
  require(c.gate == "cbam" || c.gate_kernel == usual.gate_kernel,
          "image classifier: gate_kernel applies to the gate cbam only; the gate is ", c.gate);
  require(c.gate == "cbam" || c.gate == "se" || c.gate_bias == usual.gate_bias,
          "image classifier: gate_bias applies to the gates se and cbam only; the gate is ", c.gate);
  return c;
}

// A 3 x 3 convolution before a batch norm: no bias, weights as He et al. begin before a ReLU.
nn::Conv2d conv3(int64_t in, int64_t out, int64_t stride, Rng& rng) {
  return nn::Conv2d(in, out, 3, rng, {.stride = stride, .padding = 1}, false);
}

void begin_before_relu(const nn::Conv2d& conv, Rng& rng) {
  if (nn::parameters_are_drawn()) conv.weight.set_value(nn::kaiming_normal(conv.weight.shape(), rng));
}

}  // namespace

ResidualBlock::ResidualBlock(const ResNetConfig& config, int64_t in, int64_t out, int64_t stride, Rng& rng)
    : conv1_(conv3(in, out, stride, rng)), norm1_(out) {
  begin_before_relu(conv1_, rng);
  add_child("conv1", conv1_);
  add_child("norm1", norm1_);
  if (config.gate == "sk") {
    sk_ = std::make_unique<nn::SelectiveKernel>(
        nn::SelectiveKernelOptions{.channels = out, .filters = out, .reduction = config.reduction}, rng);
    add_child("sk", *sk_);
  } else {
    conv2_ = std::make_unique<nn::Conv2d>(out, out, 3, rng, Conv2dOptions{.padding = 1}, false);
    norm2_ = std::make_unique<nn::BatchNorm2d>(out);
    begin_before_relu(*conv2_, rng);
    add_child("conv2", *conv2_);
    add_child("norm2", *norm2_);
  }
  if (config.gate == "se") {
    se_ = std::make_unique<nn::SqueezeExcite>(out, config.reduction, rng, config.gate_bias);
    add_child("gate", *se_);
  }
  if (config.gate == "cbam") {
    cbam_ = std::make_unique<nn::Cbam>(
        out, config.reduction, rng, nn::CbamOptions{.kernel = config.gate_kernel, .bias = config.gate_bias});
    add_child("gate", *cbam_);
  }
  if (in != out || stride != 1) {
    shortcut_ = std::make_unique<nn::Conv2d>(in, out, 1, rng, Conv2dOptions{.stride = stride}, false);
    shortcut_norm_ = std::make_unique<nn::BatchNorm2d>(out);
    add_child("shortcut.conv", *shortcut_);
    add_child("shortcut.norm", *shortcut_norm_);
  }
}

Var ResidualBlock::operator()(const Var& x, const nn::Context& context, std::string_view name,
                              const AttentionSite& site) const {
  const Var middle = nn::norm_in_place(norm1_, conv1_(x), context, NormActivation::relu);
  Var y = sk_ ? (*sk_)(middle, context, name, site) : nn::norm_in_place(*norm2_, (*conv2_)(middle), context);
  if (se_) y = (*se_)(y, name, site);
  if (cbam_) y = (*cbam_)(y, name, site);
  return relu(y + (shortcut_ ? nn::norm_in_place(*shortcut_norm_, (*shortcut_)(x), context) : x));
}

ResNet::ResNet(const ResNetConfig& config, Rng& rng)
    : config_(checked(config)),
      conv_(conv3(config.channels, config.width, 1, rng)),
      norm_(config.width),
      output_(4 * config.width, config.classes, rng) {
  begin_before_relu(conv_, rng);
  add_child("conv", conv_);
  add_child("norm", norm_);
  int64_t in = config.width;
  for (int64_t stage = 0; stage < 3; ++stage)
    for (int64_t b = 0; b < (config.depth - 2) / 6; ++b) {
      const int64_t out = config.width << stage, stride = stage > 0 && b == 0 ? 2 : 1;
      const std::string name = message("stages.", stage, ".", b);
      blocks_.push_back({name + ".gate",
                         std::make_unique<ResidualBlock>(config, in, out, stride, rng),
                         {.kind = AttentionSite::Kind::gate, .layer = stage, .block = b}});
      add_child(name, *blocks_.back().block);
      in = out;
    }
  add_child("output", output_);
}

Var ResNet::features(const Var& x, const nn::Context& context) const {
  require(x.rank() == 4 && x.size(3) == config_.channels, "image classifier: got pictures of shape ",
          x.shape(), ", wanted [pictures, height, width, ", config_.channels, "]");
  Var y = nn::norm_in_place(norm_, conv_(x), context, NormActivation::relu);
  for (const auto& [name, block, site] : blocks_) y = (*block)(y, context, name, site);
  return y;
}

Var ResNet::logits(const Var& x, nn::Context& context) const {
  return output_(global_avg_pool2d(features(x, context)));
}

}  // namespace fovea::models
