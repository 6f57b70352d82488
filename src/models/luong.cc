// The attentional encoder-decoder of Luong et al. (2015): encoder, teacher-forced pass and decoding step with input
// feeding.
#include "models/luong.h"

#include <cmath>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "kernels/vector/elementwise.h"
#include "nn/attentive_steps.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

using PartList = std::vector<nn::Projection::Part>;

const LuongConfig& checked(const LuongConfig& c) {
  check_ranges(c, "luong");
  check_tables({"luong", c.source_vocabulary, c.target_vocabulary, c.tie});
  require(c.tie == "none" || c.width == c.embedding, "luong: tie '", c.tie,
          "' wants a width equal to the embedding, got ", c.width, " and ", c.embedding);
  require(!c.bidirectional || c.width % 2 == 0, "luong: a width of ", c.width,
          " cannot be shared by two directions; wanted an even one");
  return c;
}

nn::RecurrentOptions stack_options(const LuongConfig& c, bool both_ways, bool decodes) {
  return {.input = c.embedding,
          .hidden = both_ways ? c.width / 2 : c.width,
          .layers = c.layers,
          .bidirectional = both_ways,
          .dropout = c.dropout,
          .stepwise = decodes};
}

}  // namespace

Luong::Luong(const LuongConfig& config, Rng& rng)
    : encoder(stack_options(checked(config), config.bidirectional, false), rng),
      decoder(stack_options(config, false, true), rng),
      attention(
          {.query_width = config.width,
           .key_width = config.width,
           .spec = nn::alignment_spec(
               config.attention, {config.score, config.locality, config.window, config.selection},
               {LuongConfig().score, LuongConfig().locality, LuongConfig().window, LuongConfig().selection})},
          rng),
      config_(config),
      values_([this] { return PartList{{combine_context}}; }),
      feed_([this] { return PartList{{feed}}; }),
      key_([this] { return PartList{{attention.key_weight()}}; }),
      from_state_([this] {
        return PartList{{combine_state},
                        {attention.query_weight(), attention.query_bias()},
                        {attention.position_weight()}};
      }) {
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
  output_bias = add_parameter("output_bias", nn::constant({config.target_vocabulary}, 0));
  add_child("encoder", encoder);
  add_child("decoder", decoder);
  add_child("attention", attention);
  const float bound = 1 / std::sqrt(static_cast<float>(width));
  if (config.input_feeding)
    feed = add_parameter("decoder.weight_feed", nn::uniform({4 * width, width}, -bound, bound, rng));
  combine_context = add_parameter("combine.context", nn::xavier_uniform({width, width}, rng));
  combine_state = add_parameter("combine.state", nn::xavier_uniform({width, width}, rng));
  add_projection(values_);
  add_projection(from_state_);
  if (feed.defined()) add_projection(feed_);
  if (attention.key_weight().defined()) add_projection(key_);
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
  if (attention.predicts()) {
    steps.position_weight = attention.position_weight();
    steps.position_vector = attention.position_vector();
    steps.window = attention.window();
    steps.sigma = attention.sigma();
  }
  return steps;
}

Luong::Memory Luong::encode(const Sentences& source, nn::Context& context) const {
  const nn::RecurrentResult read = encoder(
      dropped(embedding(source_embedding, source.ids), config_.dropout, context), source.lengths, context);
  const Var keys = key_.in_use() != nullptr ? attention.finished_keys(key_(read.out), source.lengths)
                                            : attention.keys(read.out, source.lengths);
  return {keys, values_(read.out), first_states(read.last), source.lengths};
}

Var Luong::states(const data::Batch& batch, nn::Context& context) const {
  const Sentences source(batch.source, batch.source_lengths), target(batch.target_in, batch.target_lengths);
  const Memory memory = encode(source, context);
  const Var embedded = dropped(embedding(target_embedding, target.ids), config_.dropout, context);
  KeyRuns runs = attention.runs(target.lengths, source.lengths);
  if (!config_.input_feeding) {
    const Var h = decoder(embedded, target.lengths, context, memory.first).out;
    context.rows_of_example = target.lengths;
    const Var seen = attention(h, memory.keys, memory.values, runs, context, "decoder.cross");
    return dropped(tanh(seen + linear(h, combine_state)), config_.dropout, context);
  }
  const RecurrentParameters& lowest = decoder.weights()[0];
  AttentiveLstm steps =
      fed_decoder(linear(embedded, lowest.weight_ih, lowest.bias_ih + lowest.bias_hh), context);
  steps.h = memory.first.h;
  steps.c = memory.first.c;
  steps.keys = memory.keys;
  steps.values = memory.values;
  const FedStates y = nn::attentive_lstm(steps, runs, attention, context, attention_observer() != nullptr);
  attention.show("decoder.cross", runs, y.weights);
  return dropped(y.states, config_.dropout, context);
}

void Luong::State::reorder(std::span<const int32_t> parents) {
  for (Tensor& layer : h) layer = nn::pick_rows(layer, parents);
  for (Tensor& layer : c) layer = nn::pick_rows(layer, parents);
  attentional = nn::pick_rows(attentional, parents);
  source.reorder(parents);
}

Luong::State Luong::start(const Memory& memory) const {
  const int64_t rows = memory.first.h.size(1), width = config_.width;
  State state{.h = {},
              .c = {},
              .attentional = Tensor::zeros({rows, width}),
              .source = nn::SentenceKeys(memory.keys.value(), memory.values.value(), memory.lengths)};
  for (int64_t l = 0; l < config_.layers; ++l) {
    // Copies: a step changes c in place.
    state.h.push_back(memory.first.h.value().narrow(0, l, 1).clone().reshape({rows, width}));
    state.c.push_back(memory.first.c.value().narrow(0, l, 1).clone().reshape({rows, width}));
  }
  return state;
}

Tensor Luong::step(State& state, std::span<const int32_t> tokens) const {
  check_step(tokens, state.source.rows());
  Tensor x = embedding(target_embedding, tokens).value();
  for (int64_t l = 0; l < config_.layers; ++l) {
    const auto layer = static_cast<size_t>(l);
    const Tensor before = decoder.step_input(l, x);
    if (l == 0 && config_.input_feeding) {
      const Tensor fed = feed_(Var(state.attentional)).value();
      kernels::axpy(1, fed.data(), before.data(), before.count());
    }
    decoder.step(l, before, state.h[layer], state.c[layer]);
    x = state.h[layer];
  }
  state.attentional = attend(state, x);
  ++state.step;
  return state.attentional;
}

Tensor Luong::attend(const State& state, const Tensor& h) const {
  const nn::DecoderAttentionOptions& options = attention.options();
  const kernels::RunScore score = nn::step_score(attention.score(), options.query_width);
  const int64_t width = config_.width;
  const Tensor from_state = from_state_(Var(h)).value();
  const bool predicts = attention.predicts();
  const bool projects = attention.query_weight().defined();
  const Tensor position = predicts ? attention.position_vector().value() : Tensor();
  std::vector<nn::SentenceKeys::Run> runs;
  for (int64_t r = 0; r < h.size(0); ++r) {
    const int64_t keys = state.source.keys_of(r);
    nn::SentenceKeys::Run& run = runs.emplace_back();
    run.keys = nn::run_at(options, state.step, keys);
    if (!predicts) continue;
    const float* const hidden = from_state.data() + r * from_state.size(1) + width + (projects ? score.d : 0);
    run.centre =
        static_cast<float>(keys) * kernels::predicted_share(position.data(), hidden, position.count());
    const auto seen = kernels::predicted_run(run.centre, attention.window(), run.keys.count);
    run.keys = {seen.first, seen.count};
  }
  const Tensor query = projects ? nn::columns(from_state, width, score.d) : h;
  const Tensor sum = state.source.attend({.score = score,
                                          .sigma = attention.sigma(),
                                          .selection = attention.selection(),
                                          .place_terms = attention.place_terms(),
                                          .step = state.step},
                                         query, runs);
  const Tensor own = nn::columns(from_state, 0, width);
  kernels::axpy(1, own.data(), sum.data(), sum.count());
  kernels::unary(kernels::Unary::tanh, sum.data(), sum.data(), sum.count());
  return sum;
}

}  // namespace fovea::models
