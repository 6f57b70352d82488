#include "models/bahdanau.h"

#include <cmath>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "nn/init.h"

namespace fovea::models {
namespace {

const RnnConfig& checked(const RnnConfig& c, const char* model) {
  check_tables({model, c.source_vocabulary, c.target_vocabulary, c.tie});
  require(c.width > 0 && c.embedding > 0, model, ": width and embedding must be above 0");
  require(c.output == "maxout" || c.output == "linear", model, ": output '", c.output,
          "', wanted maxout or linear");
  require(c.dropout >= 0 && c.dropout < 1, model, ": dropout ", c.dropout, ", wanted 0 or more and below 1");
  return c;
}

}  // namespace

Bahdanau::Bahdanau(const BahdanauConfig& config, Rng& rng)
    : Bahdanau(checked(config, "bahdanau"), {config.score, config.attention_width}, rng) {}

Bahdanau::Bahdanau(const RnnConfig& config, Rng& rng) : Bahdanau(checked(config, "rnn"), Choice{}, rng) {}

Bahdanau::Bahdanau(const RnnConfig& config, const Choice& choice, Rng& rng)
    : encoder({.input = config.embedding, .hidden = config.width, .bidirectional = true}, rng),
      bridge(config.width, config.width, rng),
      config_(config) {
  const int64_t width = config.width, embedding = config.embedding;
  const auto table = [&](int64_t rows) {
    return nn::normal({rows, embedding}, 0, 1 / std::sqrt(static_cast<float>(embedding)), rng);
  };
  target_embedding = add_parameter("target_embedding", table(config.target_vocabulary));
  source_embedding = config.tie == "all" ? target_embedding
                                         : add_parameter("source_embedding", table(config.source_vocabulary));
  output = config.tie == "none" ? add_parameter("output", table(config.target_vocabulary)) : target_embedding;
  output_bias = add_parameter("output_bias", Tensor::zeros({config.target_vocabulary}));
  add_child("encoder", encoder);
  add_child("bridge", bridge);
  if (!choice.score.empty()) {
    attention = std::make_unique<nn::DecoderAttention>(
        nn::DecoderAttentionOptions{
            .query_width = width, .key_width = 2 * width, .score = choice.score, .hidden = choice.width},
        rng);
    add_child("attention", *attention);
  }
  const auto parts = [&](const std::string& name, int64_t rows, float bound) {
    const auto matrix = [&](const char* part, int64_t columns) {
      return add_parameter(name + part, nn::uniform({rows, columns}, -bound, bound, rng));
    };
    const Var from_embedding = matrix(".embedding", embedding), context = matrix(".context", 2 * width),
              state = matrix(".state", width);
    return Parts{from_embedding, context, state, add_parameter(name + ".bias", Tensor::zeros({rows}))};
  };
  decoder = parts("decoder", 3 * width, 1 / std::sqrt(static_cast<float>(width)));
  decoder_state_bias = add_parameter("decoder.state_bias", Tensor::zeros({3 * width}));
  readout = parts("readout", readout_width(), 1 / std::sqrt(static_cast<float>(3 * width + embedding)));
}

Bahdanau::Memory Bahdanau::remember(const Var& annotations, const Var& last_states,
                                    std::span<const int64_t> lengths) const {
  const auto sentences = static_cast<int64_t>(lengths.size());
  const auto last = [&](int64_t direction) {
    return reshape(slice(last_states, 0, direction, 1), {sentences, config_.width});
  };
  Memory memory;
  memory.state = tanh(bridge(last(1)));
  Var seen = annotations;
  if (attention) {
    memory.lengths.assign(lengths.begin(), lengths.end());
    memory.keys = attention->keys(annotations, lengths);
  } else {
    memory.lengths.assign(lengths.size(), 1);
    memory.keys = Var(Tensor::zeros({sentences, config_.width}));
    seen = concat(std::vector<Var>{last(0), last(1)}, 1);
  }
  memory.values = linear(seen, concat(std::vector<Var>{decoder.context, readout.context}, 0));
  return memory;
}

Bahdanau::Memory Bahdanau::encode(const Sentences& source, nn::Context& context) const {
  const Var x = dropped(embedding(source_embedding, source.ids), config_.dropout, context);
  const nn::RecurrentResult read = encoder(x, source.lengths, context);
  return remember(attention ? dropped(read.out, config_.dropout, context) : read.out, read.last.h,
                  source.lengths);
}

Var Bahdanau::states(const data::Batch& batch, nn::Context& context) const {
  const Sentences source(batch.source, batch.source_lengths), target(batch.target_in, batch.target_lengths);
  const Memory memory = encode(source, context);
  const Var embedded = dropped(embedding(target_embedding, target.ids), config_.dropout, context);
  AttentiveGru steps{.products = linear(embedded, decoder.embedding, decoder.bias),
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
  const AttentiveStates y = attentive_gru(steps, runs, attention && attention_observer() != nullptr);
  if (attention) attention->show("decoder.cross", runs, y.weights);
  const Var read =
      linear(y.states, readout.state, readout.bias) + linear(embedded, readout.embedding) + y.context;
  const Var out =
      config_.output == "maxout" ? max(reshape(read, {target.total(), 2, config_.embedding}), 1) : read;
  return dropped(out, config_.dropout, context);
}

}  // namespace fovea::models
