// MobileNet (Howard et al. 2017) as an extractor of features: what a photograph shows, place by place,
// learned on ImageNet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "base/shape.h"
#include "nn/conv.h"

namespace fovea::models {

struct MobileNetConfig {
  float width = 1;      // share of the paper's channels
  int64_t blocks = 13;  // how many to keep: 11 ends with 14 x 14 x 512 for 224 x 224, 13 with 7 x 7 x 1024

  static constexpr auto fields() {
    using T = MobileNetConfig;
    return std::tuple{Field{"width", &T::width, "share of the paper's channels: 1, 0.75, 0.5 or 0.25"},
                      Field{"blocks", &T::blocks, "depthwise separable blocks to keep, 1 to 13"}};
  }
};

// Every convolution is padded as TensorFlow's SAME and followed by batch norm (epsilon 1e-3) and ReLU6.
// Parameters: conv, norm; blocks.i.depthwise, blocks.i.norm1, blocks.i.pointwise, blocks.i.norm2.
class MobileNet : public nn::Module {
 public:
  // Throws Error on a config that makes no sense.
  MobileNet(const MobileNetConfig& config, Rng& rng);
  // x: [N, H, W, 3], pixels / 127.5 - 1 (data::to_floats with 1 / 127.5 and -1) -> [N, H', W',
  // out_channels()].
  Var operator()(const Var& x, const nn::Context& context) const;
  int64_t out_channels() const;
  // Places along a side of pictures with this many pixels along it.
  int64_t out_side(int64_t side) const;

 private:
  struct Block : nn::Module {
    Block(int64_t in, int64_t out, int64_t stride, Rng& rng);
    nn::Conv2d depthwise;
    nn::BatchNorm2d norm1;
    nn::Conv2d pointwise;
    nn::BatchNorm2d norm2;
  };
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

// Loads STEM.f32 (little-endian floats) by STEM.manifest.tsv (name, shape as 3x3x8x1, first byte, bytes),
// with the names of TensorFlow's slim or of Keras. Throws Error, leaving the network as it was, when a tensor
// is missing or does not fit.
void load_mobilenet(const MobileNet& network, const std::filesystem::path& stem);

// The network that such files hold, with its first `blocks` blocks: the width is read from the shape of the first
// kernel. Throws Error when there is none.
MobileNetConfig mobilenet_config(const std::filesystem::path& stem, int64_t blocks);

// One line of a manifest.
struct ManifestEntry {
  std::string name;
  Shape shape;
  uint64_t offset = 0;  // of the first float, in bytes
};
// Throws Error, beginning with `where` and the line, on what is no manifest of a file of `data_bytes`.
std::vector<ManifestEntry> parse_manifest(std::string_view text, uint64_t data_bytes,
                                          const std::string& where);

}  // namespace fovea::models
