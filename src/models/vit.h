// The vision Transformer (Dosovitskiy et al. 2021): a picture cut into patches that are read as tokens, behind a
// class token whose last state is classified. Self-attention is any point of the algebra.
#pragma once

#include <string>
#include <tuple>

#include "models/image_classifier.h"
#include "models/size_ranges.h"
#include "nn/conv.h"
#include "nn/transformer.h"

namespace fovea::models {

struct VitConfig {
  int64_t classes = 0;
  int64_t channels = 3;                           // of a picture: 1 is grey
  int64_t picture_height = 0, picture_width = 0;  // 0: not known yet
  int64_t patch = 4;
  int64_t width = 128, heads = 4, hidden = 256, layers = 6;
  float dropout = 0.1f;
  float attention_dropout = 0;
  bool norm_first = true;
  std::string positions = "learned";
  std::string activation = "gelu";
  std::string self_attention = "scaled_dot / full / soft";

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = VitConfig;
    return std::tuple{
        Sized{"classes", &T::classes, "number of classes", between(0, 1e6)},
        Sized{"channels", &T::channels, "channels of a picture: 1 for grey, 3 for colours", between(1, 1024)},
        Sized{"picture_height", &T::picture_height, "rows of a picture", between(0, 4096)},
        Sized{"picture_width", &T::picture_width, "columns of a picture", between(0, 4096)},
        Sized{"patch", &T::patch, "side of a patch in pixels; divides the sides of the pictures",
              between(1, 1024)},
        Sized{"width", &T::width, "features of a token between layers", kWidths},
        Sized{"heads", &T::heads, "attention heads of a layer", between(1, 1024)},
        Sized{"hidden", &T::hidden, "features inside the feed-forward net", kWidths},
        Sized{"layers", &T::layers, "encoder layers", kLayers},
        Sized{"dropout", &T::dropout, "dropout rate on sub-layers and on the tokens before the first layer",
              probability()},
        Sized{"attention_dropout", &T::attention_dropout, "dropout rate on attention weights", probability()},
        Field{"norm_first", &T::norm_first, "pre-norm instead of post-norm"},
        Field{"positions", &T::positions,
              "position encoding: learned or none (use none with alibi or relative)"},
        Field{"activation", &T::activation, "activation of the feed-forward net: relu or gelu"},
        Field{"self_attention", &T::self_attention,
              "attention spec; token 0 is the class token, then the patches row by row"}};
  }
};

// Parameters: patches (a convolution: weight [width, channels, patch, patch], bias); class_token [1, width];
// positions [1 + patches, width] where learned; encoder...; output... Observers see self-attention of every
// layer over the class token and the patches.
class Vit : public ImageClassifier {
 public:
  // Throws Error on a config that makes no sense.
  Vit(const VitConfig& config, Rng& rng);
  Var logits(const Var& x, nn::Context& context) const override;
  int64_t classes() const override { return config_.classes; }
  int64_t channels() const override { return config_.channels; }
  Size2d picture_size() const override { return {config_.picture_height, config_.picture_width}; }
  Size2d patch_grid() const override {
    return {config_.picture_height / config_.patch, config_.picture_width / config_.patch};
  }

 private:
  VitConfig config_;
  nn::Conv2d patches_;
  Var class_token_, positions_;
  nn::TransformerEncoder encoder_;
  nn::Linear output_;
};

}  // namespace fovea::models
