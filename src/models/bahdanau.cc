// RNNsearch (Bahdanau et al. 2015) and the encoder-decoder without attention: encoder, teacher-forced pass and decoding
// step.
#include "models/bahdanau.h"

#include <cmath>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "kernels/vector/elementwise.h"
#include "nn/attentive_steps.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

using PartList = std::vector<nn::Projection::Part>;

template <class Config>
const Config& checked(const Config& c, const char* model) {
  check_ranges(c, model);
  check_tables({model, c.source_vocabulary, c.target_vocabulary, c.tie});
  require(c.output == "maxout" || c.output == "linear", model, ": output '", c.output,
          "', wanted maxout or linear");
  return c;
}

AttentionSpec alignment_of(const BahdanauConfig& config) {
  const BahdanauConfig standard;
  const AttentionSpec spec =
      nn::alignment_spec(config.attention, {.score = config.score, .selection = config.selection},
                         {.score = standard.score, .selection = standard.selection});
  require(spec.terms.gaussian == 0, "bahdanau: attention '", to_string(spec),
          "': gaussian(sigma), a predicted place, works in the model luong");
  return spec;
}

}  // namespace

Bahdanau::Bahdanau(const BahdanauConfig& config, Rng& rng)
    : Bahdanau(checked(config, "bahdanau"), {alignment_of(config), config.attention_width}, rng) {}

Bahdanau::Bahdanau(const RnnConfig& config, Rng& rng) : Bahdanau(checked(config, "rnn"), Choice{}, rng) {}

Bahdanau::Bahdanau(const RnnConfig& config, const Choice& choice, Rng& rng)
    : encoder({.input = config.embedding, .hidden = config.width, .bidirectional = true}, rng),
      bridge(config.width, config.width, rng),
      config_(config),
      from_token_([this] {
        return PartList{{decoder.embedding, decoder.bias}, {readout.embedding, readout.bias}};
      }),
      from_context_([this] {
        return PartList{{decoder.context}, {readout.context}};
      }),
      from_state_([this] {
        PartList parts{{decoder.state, decoder_state_bias}};
        if (this->attention)
          parts.push_back({this->attention->query_weight(), this->attention->query_bias()});
        return parts;
      }),
      read_state_([this] { return PartList{{readout.state}}; }),
      key_([this] { return PartList{{this->attention->key_weight()}}; }) {
  const int64_t width = config.width, embedding = config.embedding;
  const auto table = [&](int64_t rows) {
    return nn::normal({rows, embedding}, 0, 1 / std::sqrt(static_cast<float>(embedding)), rng);
  };
  target_embedding = add_parameter("target_embedding", table(config.target_vocabulary));
  source_embedding = config.tie == "all" ? target_embedding
                                         : add_parameter("source_embedding", table(config.source_vocabulary));
  output = config.tie == "none" ? add_parameter("output", table(config.target_vocabulary)) : target_embedding;
  output_bias = add_parameter("output_bias", nn::constant({config.target_vocabulary}, 0));
  add_child("encoder", encoder);
  add_child("bridge", bridge);
  if (choice.spec) {
    attention = std::make_unique<nn::DecoderAttention>(
        nn::DecoderAttentionOptions{
            .query_width = width, .key_width = 2 * width, .spec = *choice.spec, .hidden = choice.width},
        rng);
    add_child("attention", *attention);
  }
  const auto parts = [&](const std::string& name, int64_t rows, float bound) {
    const auto matrix = [&](const char* part, int64_t columns) {
      return add_parameter(name + part, nn::uniform({rows, columns}, -bound, bound, rng));
    };
    const Var from_embedding = matrix(".embedding", embedding), context = matrix(".context", 2 * width),
              state = matrix(".state", width);
    return InputWeights{from_embedding, context, state,
                        add_parameter(name + ".bias", nn::constant({rows}, 0))};
  };
  decoder = parts("decoder", 3 * width, 1 / std::sqrt(static_cast<float>(width)));
  decoder_state_bias = add_parameter("decoder.state_bias", nn::constant({3 * width}, 0));
  readout = parts("readout", readout_width(), 1 / std::sqrt(static_cast<float>(3 * width + embedding)));
  for (nn::Projection* projection : {&from_token_, &from_context_, &from_state_, &read_state_})
    add_projection(*projection);
  if (attention && attention->key_weight().defined()) add_projection(key_);
}

Bahdanau::Memory Bahdanau::encode(const Sentences& source, nn::Context& context) const {
  const Var x = dropped(embedding(source_embedding, source.ids), config_.dropout, context);
  const nn::RecurrentResult read = encoder(x, source.lengths, context);
  const auto last = [&](int64_t direction) {
    return reshape(slice(read.last.h, 0, direction, 1), {source.count(), config_.width});
  };
  Memory memory;
  memory.state = tanh(bridge(last(1)));
  Var seen;
  if (attention) {
    seen = dropped(read.out, config_.dropout, context);
    memory.lengths = source.lengths;
    memory.keys = key_.in_use() != nullptr ? attention->finished_keys(key_(seen), source.lengths)
                                           : attention->keys(seen, source.lengths);
  } else {
    seen = concat(std::vector<Var>{last(0), last(1)}, 1);
    memory.lengths.assign(source.lengths.size(), 1);
    memory.keys = Var(Tensor::zeros({source.count(), config_.width}));
  }
  memory.values = from_context_(seen);
  return memory;
}

Bahdanau::TokenTerms Bahdanau::token_terms(const Var& embedded) const {
  if (from_token_.in_use() == nullptr)
    return {linear(embedded, decoder.embedding, decoder.bias),
            linear(embedded, readout.embedding, readout.bias)};
  const Tensor both = from_token_(embedded).value();
  const int64_t gates = 3 * config_.width;
  return {Var(nn::columns(both, 0, gates)), Var(nn::columns(both, gates, readout_width()))};
}

Var Bahdanau::maxed(const Var& read) const {
  return config_.output == "maxout" ? max(reshape(read, {read.size(0), 2, config_.embedding}), 1) : read;
}

Var Bahdanau::states(const data::Batch& batch, nn::Context& context) const {
  const Sentences source(batch.source, batch.source_lengths), target(batch.target_in, batch.target_lengths);
  const Memory memory = encode(source, context);
  const TokenTerms tokens =
      token_terms(dropped(embedding(target_embedding, target.ids), config_.dropout, context));
  AttentiveGru steps{.products = tokens.gates,
                     .state = memory.state,
                     .keys = memory.keys,
                     .values = memory.values,
                     .weight = decoder.state,
                     .bias = decoder_state_bias};
  KeyRuns runs = KeyRuns::sentences(target.lengths, memory.lengths);
  if (attention) {
    steps.query_weight = attention->query_weight();
    steps.query_bias = attention->query_bias();
    steps.score = attention->score();
    runs = attention->runs(target.lengths, memory.lengths);
  }
  const bool shown = attention && attention_observer() != nullptr;
  const AttentiveStates y =
      attention ? nn::attentive_gru(steps, runs, *attention, context, shown) : attentive_gru(steps, runs);
  if (shown) attention->show("decoder.cross", runs, y.weights);
  return dropped(maxed(read_state_(y.states) + tokens.readout + y.context), config_.dropout, context);
}

void Bahdanau::State::reorder(std::span<const int32_t> parents) {
  hidden = nn::pick_rows(hidden, parents);
  source.reorder(parents);
}

Bahdanau::State Bahdanau::start(const Memory& memory) const {
  return {memory.state.value(), nn::SentenceKeys(memory.keys.value(), memory.values.value(), memory.lengths)};
}

Tensor Bahdanau::attend(const State& state, const Tensor& from_state) const {
  std::vector<nn::SentenceKeys::Run> runs;
  for (int64_t r = 0; r < state.source.rows(); ++r)
    runs.push_back({attention ? nn::run_at(attention->options(), state.step, state.source.keys_of(r))
                              : nn::KeyRun{0, 1}});
  const int64_t gates = 3 * config_.width, rest = from_state.size(1) - gates;
  const Tensor query = rest > 0 ? nn::columns(from_state, gates, rest) : state.hidden;
  const RunScore score = attention ? attention->score() : RunScore{};
  nn::SentenceKeys::Options options{.score = nn::step_score(score, config_.width), .step = state.step};
  if (attention) {
    options.selection = attention->selection();
    options.place_terms = attention->place_terms();
  }
  return state.source.attend(options, query, runs);
}

Tensor Bahdanau::step(State& state, std::span<const int32_t> tokens) const {
  check_step(tokens, state.source.rows());
  const int64_t gates = 3 * config_.width;
  const Tensor from_state = from_state_(Var(state.hidden)).value();
  const Tensor before = from_token_(embedding(target_embedding, tokens)).value();
  const Tensor context = attend(state, from_state);
  kernels::axpy(1, context.data(), before.data(), before.count());
  Tensor no_cell;
  nn::recurrent_step(RecurrentCell::gru, before, from_state, state.hidden, no_cell);
  ++state.step;
  const Tensor read = read_state_(Var(state.hidden)).value();
  const Tensor rest = nn::columns(before, gates, readout_width());
  kernels::axpy(1, rest.data(), read.data(), read.count());
  return maxed(Var(read)).value();
}

}  // namespace fovea::models
