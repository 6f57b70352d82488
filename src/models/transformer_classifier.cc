#include "models/transformer_classifier.h"

#include <cmath>

#include "autograd/ops.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

const TransformerClassifierConfig& checked(const TransformerClassifierConfig& c) {
  check_ranges(c, "transformer");
  check_classes({"transformer", c.vocabulary, c.classes});
  require(c.positions == "sinusoid" || c.positions == "learned" || c.positions == "none",
          "transformer: positions '", c.positions, "', wanted sinusoid, learned or none");
  require(c.pooling == "attention" || c.pooling == "mean" || c.pooling == "first", "transformer: pooling '",
          c.pooling, "', wanted attention, mean or first");
  return c;
}

// The pattern counts within each text, so a call gives it, not the layer.
nn::TransformerOptions layer_options(const TransformerClassifierConfig& c) {
  AttentionSpec spec = self_attention_spec(c.self_attention);
  spec.pattern = full();
  return {.width = c.width,
          .heads = c.heads,
          .hidden = c.hidden,
          .dropout = c.dropout,
          .attention_dropout = c.attention_dropout,
          .activation = nn::activation_named(c.activation),
          .norm_first = c.norm_first,
          .spec = spec};
}

}  // namespace

TransformerClassifier::TransformerClassifier(const TransformerClassifierConfig& config, Rng& rng)
    : config_(checked(config)),
      spec_(parse_spec(config.self_attention)),
      encoder_(layer_options(config), config.layers, config.norm_first, rng),
      output_(config.width, config.classes, rng) {
  const auto table = [&](int64_t rows) {
    return nn::normal({rows, config.width}, 0, 1 / std::sqrt(static_cast<float>(config.width)), rng);
  };
  embedding_ = add_parameter("embedding", table(config.vocabulary));
  if (config.positions == "learned") positions_ = add_parameter("positions", table(config.max_positions));
  add_child("encoder", encoder_);
  if (config.pooling == "attention") {
    attention_ = std::make_unique<nn::AttentionPooling>(
        nn::AttentionPoolingOptions{
            .width = config.width, .score = config.score, .selection = config.selection},
        rng);
    add_child("attention", *attention_);
  }
  add_child("output", output_);
}

Var TransformerClassifier::logits(const Sentences& texts, nn::Context& context) const {
  const Var x = config_.positions == "none"
                    ? dropped(embedding(embedding_, texts.ids), config_.dropout, context)
                    : embed_at_positions(embedding_, positions_, texts, config_.dropout, context);
  context.rows_of_example = texts.lengths;
  const Var read = reshape(encoder_(reshape(x, {1, texts.total(), config_.width}), context,
                                    {.self = within(texts.lengths, spec_.pattern)}),
                           {texts.total(), config_.width});
  Var whole;
  if (attention_) {
    context.rows_of_example.assign(texts.lengths.size(), 1);
    whole = (*attention_)(read, texts.lengths, context);
  } else if (config_.pooling == "mean") {
    whole = nn::mean_pooling(read, texts.lengths);
  } else {
    std::vector<int32_t> first;
    int32_t begin = 0;
    for (const int64_t length : texts.lengths) {
      first.push_back(begin);
      begin += static_cast<int32_t>(length);
    }
    whole = gather(read, first);
  }
  return output_(dropped(whole, config_.dropout, context));
}

}  // namespace fovea::models
