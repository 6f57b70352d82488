#include "models/lstm_classifier.h"

#include <cmath>

#include "autograd/ops.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

const LstmClassifierConfig& checked(const LstmClassifierConfig& c) {
  check_ranges(c, "lstm");
  check_classes({"lstm", c.vocabulary, c.classes});
  require(c.pooling == "attention" || c.pooling == "mean" || c.pooling == "last", "lstm: pooling '",
          c.pooling, "', wanted attention, mean or last");
  return c;
}

int64_t state_width(const LstmClassifierConfig& c) {
  return c.width * (c.bidirectional ? 2 : 1);
}

}  // namespace

LstmClassifier::LstmClassifier(const LstmClassifierConfig& config, Rng& rng)
    : config_(checked(config)),
      embedding_(add_parameter("embedding", nn::normal({config.vocabulary, config.embedding}, 0, 0.1f, rng))),
      encoder_({.input = config.embedding,
                .hidden = config.width,
                .layers = config.layers,
                .bidirectional = config.bidirectional,
                .dropout = config.dropout},
               rng),
      output_(state_width(config), config.classes, rng) {
  add_child("encoder", encoder_);
  if (config.pooling == "attention") {
    attention_ =
        std::make_unique<nn::AttentionPooling>(nn::AttentionPoolingOptions{.width = state_width(config),
                                                                           .score = config.score,
                                                                           .hidden = config.attention_width,
                                                                           .selection = config.selection},
                                               rng);
    add_child("attention", *attention_);
  }
  if (config.pairs) {
    pair_ = std::make_unique<PairFeatures>(state_width(config), rng);
    add_child("pair", *pair_);
  }
  add_child("output", output_);
}

Var LstmClassifier::logits(const Sentences& texts, nn::Context& context) const {
  const std::vector<int64_t> lengths = texts.single_lengths();
  const Var x = dropped(embedding(embedding_, texts.ids), config_.dropout, context);
  const nn::RecurrentResult read = encoder_(x, lengths, context);
  Var whole;
  if (attention_) {
    context.rows_of_example.assign(texts.lengths.size(), pair_ ? 2 : 1);
    whole = (*attention_)(read.out, lengths, context);
  } else if (config_.pooling == "mean") {
    whole = nn::mean_pooling(read.out, lengths);
  } else {
    std::vector<Var> last;  // of the last layer, each direction
    const int64_t directions = encoder_.directions();
    for (int64_t i = (config_.layers - 1) * directions; i < config_.layers * directions; ++i)
      last.push_back(
          reshape(slice(read.last.h, 0, i, 1), {static_cast<int64_t>(lengths.size()), config_.width}));
    whole = concat(last, 1);
  }
  if (pair_) whole = (*pair_)(dropped(whole, config_.dropout, context));
  return output_(dropped(whole, config_.dropout, context));
}

}  // namespace fovea::models
