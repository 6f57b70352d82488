#include "models/luong.h"

#include <cmath>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

const LuongConfig& checked(const LuongConfig& c) {
  check_tables({"luong", c.source_vocabulary, c.target_vocabulary, c.tie});
  require(c.width > 0 && c.embedding > 0 && c.layers > 0,
          "luong: width, embedding and layers must be above 0");
  require(c.tie == "none" || c.width == c.embedding, "luong: tie '", c.tie,
          "' wants a width equal to the embedding, got ", c.width, " and ", c.embedding);
  require(!c.bidirectional || c.width % 2 == 0, "luong: a width of ", c.width,
          " cannot be shared by two directions; wanted an even one");
  require(c.dropout >= 0 && c.dropout < 1, "luong: dropout ", c.dropout, ", wanted 0 or more and below 1");
  return c;
}

nn::RecurrentOptions stack_options(const LuongConfig& c, bool both_ways) {
  return {.input = c.embedding,
          .hidden = both_ways ? c.width / 2 : c.width,
          .layers = c.layers,
          .bidirectional = both_ways,
          .dropout = c.dropout};
}

}  // namespace

Luong::Luong(const LuongConfig& config, Rng& rng)
    : encoder(stack_options(checked(config), config.bidirectional), rng),
      decoder(stack_options(config, false), rng),
      attention({.query_width = config.width,
                 .key_width = config.width,
                 .score = config.score,
                 .locality = nn::locality_named(config.locality),
                 .window = config.window},
                rng),
      config_(config) {
  const int64_t width = config.width;
  const auto table = [&](int64_t rows, int64_t columns) {
    return nn::normal({rows, columns}, 0, 1 / std::sqrt(static_cast<float>(columns)), rng);
  };
  target_embedding = add_parameter("target_embedding", table(config.target_vocabulary, config.embedding));
  source_embedding = config.tie == "all" ? target_embedding
                                         : add_parameter("source_embedding",
                                                         table(config.source_vocabulary, config.embedding));
  output = config.tie == "none" ? add_parameter("output", table(config.target_vocabulary, width))
                                : target_embedding;
  output_bias = add_parameter("output_bias", Tensor::zeros({config.target_vocabulary}));
  add_child("encoder", encoder);
  add_child("decoder", decoder);
  add_child("attention", attention);
  const float bound = 1 / std::sqrt(static_cast<float>(width));
  if (config.input_feeding)
    feed = add_parameter("decoder.weight_feed", nn::uniform({4 * width, width}, -bound, bound, rng));
  combine_context = add_parameter("combine.context", nn::xavier_uniform({width, width}, rng));
  combine_state = add_parameter("combine.state", nn::xavier_uniform({width, width}, rng));
}

nn::RecurrentStates Luong::first_states(const nn::RecurrentStates& last) const {
  if (!config_.bidirectional) return last;
  const int64_t sentences = last.h.size(1);
  const auto join = [&](const Var& states) {
    const Var apart = reshape(states, {config_.layers, 2, sentences, config_.width / 2});
    return reshape(permute(apart, {0, 2, 1, 3}), {config_.layers, sentences, config_.width});
  };
  return {join(last.h), join(last.c)};
}

AttentiveLstm Luong::fed_decoder(const Var& products, nn::Context& context) const {
  AttentiveLstm steps{.products = products, .layers = {}, .combine = combine_state};
  steps.dropout = context.rate(config_.dropout);
  for (const RecurrentParameters& p : decoder.weights()) {
    const bool lowest = steps.layers.empty();
    steps.layers.push_back({.input = lowest ? feed : p.weight_ih,
                            .state = p.weight_hh,
                            .bias = lowest ? Var() : p.bias_ih + p.bias_hh,
                            .seed = !lowest && steps.dropout > 0 ? context.next_seed() : 0});
  }
  steps.query_weight = attention.query_weight();
  steps.query_bias = attention.query_bias();
  steps.score = attention.score();
  if (attention.options().locality == nn::Locality::local_p) {
    steps.position_weight = attention.position_weight();
    steps.position_vector = attention.position_vector();
    steps.window = config_.window;
    steps.sigma = attention.sigma();
  }
  return steps;
}

Var Luong::states(const data::Batch& batch, nn::Context& context) const {
  const Sentences source(batch.source, batch.source_lengths), target(batch.target_in, batch.target_lengths);
  const nn::RecurrentResult read = encoder(
      dropped(embedding(source_embedding, source.ids), config_.dropout, context), source.lengths, context);
  const nn::RecurrentStates first = first_states(read.last);
  const Var keys = attention.keys(read.out, source.lengths), values = linear(read.out, combine_context);
  const Var embedded = dropped(embedding(target_embedding, target.ids), config_.dropout, context);
  KeyRuns runs = attention.runs(target.lengths, source.lengths);
  if (!config_.input_feeding) {
    const Var h = decoder(embedded, target.lengths, context, first).out;
    const Var seen = attention(h, keys, values, runs, "decoder.cross");
    return dropped(tanh(seen + linear(h, combine_state)), config_.dropout, context);
  }
  const RecurrentParameters& lowest = decoder.weights()[0];
  AttentiveLstm steps =
      fed_decoder(linear(embedded, lowest.weight_ih, lowest.bias_ih + lowest.bias_hh), context);
  steps.h = first.h;
  steps.c = first.c;
  steps.keys = keys;
  steps.values = values;
  const FedStates y = attentive_lstm(steps, runs, attention_observer() != nullptr);
  attention.show("decoder.cross", runs, y.weights);
  return dropped(y.states, config_.dropout, context);
}

}  // namespace fovea::models
