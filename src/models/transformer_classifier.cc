// A Transformer encoder with any attention spec over packed texts, pooled into class logits.
#include "models/transformer_classifier.h"

#include <cmath>

#include "autograd/ops.h"
#include "models/added_tokens.h"
#include "models/encoder_options.h"
#include "nn/init.h"
#include "nn/positions.h"

namespace fovea::models {
namespace {

const TransformerClassifierConfig& checked(const TransformerClassifierConfig& c) {
  check_ranges(c, "transformer");
  check_classes({"transformer", c.vocabulary, c.classes});
  require(c.positions == "sinusoid" || c.positions == "learned" || c.positions == "none",
          "transformer: positions '", c.positions, "', wanted sinusoid, learned or none");
  require(c.pooling == "attention" || c.pooling == "mean" || c.pooling == "first" || c.pooling == "last",
          "transformer: pooling '", c.pooling, "', wanted attention, mean, first or last");
  const bool full_pattern = parse_spec(c.self_attention).pattern == full();
  if (!c.global.empty()) data::check_global_rule(c.global);
  require(
      c.global.empty() || !full_pattern,
      "transformer: --global has no effect where every token sees every other; choose a sparse pattern, such as "
      "--self-attention \"scaled_dot / window(64,64)\"");
  return c;
}

}  // namespace

TransformerClassifier::TransformerClassifier(const TransformerClassifierConfig& config, Rng& rng)
    : config_(checked(config)),
      spec_(parse_spec(config.self_attention)),
      encoder_(packed_encoder_options(config, self_attention_spec(config.self_attention, config.heads)),
               config.layers, config.norm_first, rng),
      output_(config.width, config.classes, rng) {
  const auto table = [&](int64_t rows) {
    return nn::normal({rows, config.width}, 0, 1 / std::sqrt(static_cast<float>(config.width)), rng);
  };
  embedding_ = add_parameter("embedding", table(config.vocabulary));
  if (config.positions == "learned") positions_ = add_parameter("positions", table(config.max_positions));
  if (config.pairs) segments_ = add_parameter("segments", table(2));
  if (config.added_global > 0) added_ = add_parameter("global_tokens", table(config.added_global));
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

void TransformerClassifier::use_tokenizer(const data::Tokenizer& tokenizer) {
  if (!config_.global.empty()) global_ = data::GlobalTokens(config_.global, tokenizer);
}

ClassificationModel::TextView TransformerClassifier::view(std::span<const int32_t> ids) const {
  return {
      .added = config_.added_global, .global = global_.places(ids), .reads_last = config_.pooling == "last"};
}

Var TransformerClassifier::embed(const Sentences& texts, nn::Context& context) const {
  Var x = config_.positions == "none"
              ? embedding(embedding_, texts.ids)
              : embed_at(embedding_, positions_, texts.ids, nn::packed_positions(texts.lengths));
  if (segments_.defined()) x = x + embedding(segments_, texts.types());
  return dropped(x, config_.dropout, context);
}

// The pattern of each text, with the text's global tokens; lengths: with the added ones.
Pattern TransformerClassifier::pattern_of(const Sentences& texts, const std::vector<int64_t>& lengths) const {
  require(config_.global.empty() || !global_.empty(),
          "transformer: global tokens need the model's tokenizer");
  if (global_.empty() && !added_.defined()) return within(lengths, spec_.pattern);
  std::vector<Pattern> each;
  size_t begin = 0;
  for (const int64_t length : texts.lengths) {
    std::vector<int64_t> places = global_.places(texts.ids.subspan(begin, static_cast<size_t>(length)));
    for (int64_t& place : places) place += config_.added_global;
    for (int64_t i = 0; i < config_.added_global; ++i) places.push_back(i);
    each.push_back(places.empty() ? spec_.pattern : spec_.pattern | global(std::move(places)));
    begin += static_cast<size_t>(length);
  }
  return within(lengths, std::move(each));
}

// -> [tokens of the texts, width].
Var TransformerClassifier::encode(const Sentences& texts, nn::Context& context) const {
  const Var x = embed(texts, context);
  const auto through = [&](const Var& rows, const std::vector<int64_t>& lengths) {
    context.rows_of_example = lengths;
    const int64_t total = rows.size(0);
    return reshape(
        encoder_(reshape(rows, {1, total, config_.width}), context, {.self = pattern_of(texts, lengths)}),
        {total, config_.width});
  };
  if (!added_.defined()) return through(x, texts.lengths);
  const AddedTokens with_added(texts.lengths, config_.added_global);
  return with_added.own(through(with_added.put_in_front(added_, x), with_added.lengths()));
}

Var TransformerClassifier::logits(const Sentences& texts, nn::Context& context) const {
  const Var read = encode(texts, context);
  Var whole;
  if (attention_) {
    context.rows_of_example.assign(texts.lengths.size(), 1);
    whole = (*attention_)(read, texts.lengths, context);
  } else if (config_.pooling == "mean") {
    whole = nn::mean_pooling(read, texts.lengths);
  } else {
    std::vector<int32_t> chosen;
    int32_t begin = 0;
    for (const int64_t length : texts.lengths) {
      chosen.push_back(config_.pooling == "first" ? begin : begin + static_cast<int32_t>(length) - 1);
      begin += static_cast<int32_t>(length);
    }
    whole = gather(read, chosen);
  }
  return output_(dropped(whole, config_.dropout, context));
}

}  // namespace fovea::models
