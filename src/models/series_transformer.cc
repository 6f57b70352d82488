#include "models/series_transformer.h"

#include <algorithm>

#include "autograd/ops.h"
#include "models/encoder_options.h"
#include "models/sentences.h"
#include "nn/init.h"
#include "nn/positions.h"

namespace fovea::models {
namespace {

const SeriesTransformerConfig& checked(const SeriesTransformerConfig& c) {
  check_ranges(c, "transformer");
  require(c.positions == "sinusoid" || c.positions == "learned" || c.positions == "none",
          "transformer: positions '", c.positions, "', wanted sinusoid, learned or none");
  return c;
}

}  // namespace

SeriesTransformer::SeriesTransformer(const SeriesTransformerConfig& config, Rng& rng)
    : SeriesModel(config, "transformer", {"flatten", "attention", "mean", "first", "last"}),
      config_(checked(config)),
      spec_(parse_spec(config.self_attention)),
      input_(form().token_width(), config.width, rng),
      encoder_(packed_encoder_options(config, self_attention_spec(config.self_attention)), config.layers,
               config.norm_first, rng) {
  add_child("input", input_);
  if (config.positions == "learned")
    positions_ = add_parameter("positions", nn::normal({config.max_positions, config.width}, 0, 0.02f, rng));
  add_child("encoder", encoder_);
  add_head(config.width, rng);
}

Var SeriesTransformer::encode(const Var& x, std::span<const int64_t> lengths, nn::Context& context) const {
  Var tokens = input_(x);
  if (config_.positions != "none") {
    const std::vector<int32_t> places = nn::packed_positions(lengths);
    const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    require(!positions_.defined() || longest <= config_.max_positions, "transformer: a series of ", longest,
            " tokens, but positions were learned up to ", config_.max_positions);
    tokens = tokens + (positions_.defined() ? embedding(positions_, places)
                                            : Var(nn::sinusoid(places, config_.width)));
  }
  const int64_t total = tokens.size(0);
  const Var read = encoder_(reshape(dropped(tokens, config_.dropout, context), {1, total, config_.width}),
                            context, {.self = within({lengths.begin(), lengths.end()}, spec_.pattern)});
  return reshape(read, {total, config_.width});
}

}  // namespace fovea::models
