// A residual network for small pictures (He et al. 2016, the one for CIFAR), with attention over channels,
// places or branches in every block.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "models/image_classifier.h"
#include "models/size_ranges.h"
#include "nn/gates.h"

namespace fovea::models {

struct ResNetConfig {
  int64_t classes = 0;
  int64_t channels = 3;  // of a picture: 1 is grey
  int64_t depth = 20;    // 6 n + 2 layers: three stages of n blocks of two
  int64_t width = 16;    // features of the first stage; the second has twice, the third four times as many
  std::string gate = "none";
  int64_t reduction = 8;
  int64_t gate_kernel = 7;
  bool gate_bias = true;

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return gate != "none"; }

  static constexpr auto fields() {
    using T = ResNetConfig;
    return std::tuple{
        Sized{"classes", &T::classes, "number of classes", between(0, 1e6)},
        Sized{"channels", &T::channels, "channels of a picture: 1 for grey, 3 for colours", between(1, 1024)},
        Sized{"depth", &T::depth, "layers: 8, 14, 20, ... (6 n + 2)", between(8, 1202)},
        Sized{"width", &T::width, "channels of the first stage", kWidths},
        Field{"gate", &T::gate,
              "attention in every block: none, se (channels), cbam (channels, places) or sk (branches)"},
        Sized{"reduction", &T::reduction,
              "gates: ratio of the number of channels to the width of the gate's hidden layer",
              between(1, 1 << 16)},
        Sized{"gate_kernel", &T::gate_kernel,
              "cbam: side of the kernel of spatial attention, an odd number; 3 and 7 are common",
              between(1, 63)},
        Field{"gate_bias", &T::gate_bias,
              "se, cbam: use biases in the hidden layer of the gate; most public CBAM code has none"}};
  }
};

// conv1, norm1, relu; conv2, norm2 (or sk, which stands for both); the gate; plus the shortcut; relu.
// Children: those names, and shortcut.conv, shortcut.norm where the size changes.
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(const ResNetConfig& config, int64_t in, int64_t out, int64_t stride, Rng& rng);
  // Shown to observers under this name, at this site.
  Var operator()(const Var& x, const nn::Context& context, std::string_view name,
                 const AttentionSite& site) const;

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  std::unique_ptr<nn::Conv2d> conv2_, shortcut_;
  std::unique_ptr<nn::BatchNorm2d> norm2_, shortcut_norm_;
  std::unique_ptr<nn::SqueezeExcite> se_;
  std::unique_ptr<nn::Cbam> cbam_;
  std::unique_ptr<nn::SelectiveKernel> sk_;
};

// Parameters: conv, norm; stages.s.b as the blocks name them; output [classes, 4 width]. Observers see the
// gates of block b of stage s as "stages.s.b.gate" (".channel" and ".spatial" behind it for cbam).
class ResNet : public ImageClassifier {
 public:
  // Throws Error on a config that makes no sense.
  ResNet(const ResNetConfig& config, Rng& rng);

  // x: [N, H, W, channels], any H and W -> [N, H / 4, W / 4, 4 width], rounded up.
  Var features(const Var& x, const nn::Context& context) const;
  Var logits(const Var& x, nn::Context& context) const override;
  int64_t classes() const override { return config_.classes; }
  int64_t channels() const override { return config_.channels; }

 private:
  struct NamedBlock {
    std::string gate_name;
    std::unique_ptr<ResidualBlock> block;
    AttentionSite site;
  };
  ResNetConfig config_;
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
  std::vector<NamedBlock> blocks_;
  nn::Linear output_;
};

}  // namespace fovea::models
