// A Transformer's encoder over sequences of numbers, with any attention of the algebra; with patches and
// independent channels it is PatchTST (Nie et al. 2023), with layer norm in place of batch norm.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>

#include "models/series.h"
#include "nn/transformer.h"

namespace fovea::models {

struct SeriesTransformerConfig : SeriesConfig {
  int64_t width = 64, heads = 4, hidden = 128, layers = 2;
  float attention_dropout = 0;
  bool norm_first = true;
  std::string positions = "sinusoid";
  int64_t max_positions = 4096;
  std::string activation = "gelu";
  std::string self_attention = "scaled_dot / full / soft";

  // Whether `fovea explain` has weights to show.
  bool has_attention() const { return true; }

  static constexpr auto fields() {
    using T = SeriesTransformerConfig;
    return std::tuple_cat(
        SeriesConfig::fields(),
        std::tuple{Sized{"width", &T::width, "features of a token between layers", kWidths},
                   Sized{"heads", &T::heads, "attention heads of a layer", between(1, 1024)},
                   Sized{"hidden", &T::hidden, "features inside the feed-forward net", kWidths},
                   Sized{"layers", &T::layers, "encoder layers", kLayers},
                   Sized{"attention_dropout", &T::attention_dropout, "dropout rate on attention weights",
                         probability()},
                   Field{"norm_first", &T::norm_first, "pre-norm instead of post-norm"},
                   Field{"positions", &T::positions,
                         "position encoding: sinusoid, learned or none (use none with alibi or relative)"},
                   Sized{"max_positions", &T::max_positions,
                         "number of learned positions: the most tokens of a series", between(1, 1 << 24)},
                   Field{"activation", &T::activation, "activation of the feed-forward net: relu or gelu"},
                   Field{"self_attention", &T::self_attention,
                         "attention spec; positions count tokens from the first one of a series"}});
  }
};

// Parameters: input..., positions [max_positions, width] where learned, encoder... (nn::TransformerEncoder),
// attention..., output...
class SeriesTransformer : public SeriesModel {
 public:
  // Throws Error on a config that makes no sense.
  SeriesTransformer(const SeriesTransformerConfig& config, Rng& rng);

 private:
  Var encode(const Var& x, std::span<const int64_t> lengths, nn::Context& context) const override;
  int64_t most_tokens() const override {
    return positions_.defined() ? std::min(config_.max_positions, kMostSeriesTokens) : kMostSeriesTokens;
  }

  SeriesTransformerConfig config_;
  AttentionSpec spec_;
  nn::Linear input_;
  Var positions_;
  nn::TransformerEncoder encoder_;
};

}  // namespace fovea::models
