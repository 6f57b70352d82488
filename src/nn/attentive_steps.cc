// The step loops of recurrent decoders, made of the tape's own ops.
#include "nn/attentive_steps.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "autograd/ops.h"
#include "autograd/ops_repeated.h"
#include "nn/runs.h"

namespace fovea::nn {
namespace {

// The sentences that have a step t, the tokens of those steps, and where each is among the sentences of
// step t - 1.
struct Step {
  std::vector<int32_t> sentences, tokens, before;
};

std::vector<Step> steps_of(const KeyRuns& runs) {
  std::vector<Step> steps;
  const auto sentences = static_cast<int32_t>(runs.query_begin.size()) - 1;
  for (int64_t t = 0;; ++t) {
    Step step;
    int32_t place = 0;  // among those of the step before; of the first step, among all
    for (int32_t s = 0; s < sentences; ++s) {
      const int64_t first = runs.query_begin[static_cast<size_t>(s)];
      const int64_t length = runs.query_begin[static_cast<size_t>(s) + 1] - first;
      if (length > t) {
        step.sentences.push_back(s);
        step.tokens.push_back(static_cast<int32_t>(first + t));
        step.before.push_back(place);
      }
      if (t == 0 || length >= t) ++place;
    }
    if (step.sentences.empty()) return steps;
    steps.push_back(std::move(step));
  }
}

// Rows made step by step, [rows of a step, ...] each, in the order of the tokens.
Var in_order(const std::vector<Var>& made, const std::vector<Step>& steps, int64_t tokens) {
  if (made.empty()) return {};
  std::vector<int32_t> place(static_cast<size_t>(tokens));
  int32_t row = 0;
  for (const Step& step : steps)
    for (const int32_t token : step.tokens) place[static_cast<size_t>(token)] = row++;
  return gather(concat(made, 0), place);
}

Var columns(const Var& x, int64_t begin, int64_t count) {
  return slice(x, 1, begin, count);
}

// What the states of one step see.
class StepAttention {
 public:
  StepAttention(const Selection& selection, const RunScore& score, const Var& keys, const Var& values,
                Context& context, const PlaceTerms* place_terms = nullptr)
      : selection_(selection),
        score_(score),
        keys_(keys),
        values_(values),
        context_(context),
        place_terms_(place_terms) {
    counts_choices_ = !context.rows_of_example.empty();
    if (selection == soft() && place_terms == nullptr) repeated_.emplace(keys, values, score);
  }
  // Keeps the weights, [steps, longest run] of all steps.
  void keep_weights(const KeyRuns& runs) { weights_ = Tensor::zeros({runs.queries(), runs.longest}); }
  const Tensor& weights() const { return weights_; }
  // Of the last step, where hard selection drew.
  const Var& entropy() const { return entropy_; }

  // query: [rows, d]. The runs are those of all steps. want_weights: of this step, with a gradient (soft alone).
  RepeatedRuns::Seen operator()(const Var& query, const Step& step, const KeyRuns& runs,
                                const RunGaussian& gaussian, bool want_weights = false) {
    std::vector<int32_t> first, count;
    for (const int32_t token : step.tokens) {
      first.push_back(runs.first[static_cast<size_t>(token)]);
      count.push_back(runs.count[static_cast<size_t>(token)]);
    }
    const bool keeps = weights_.defined();
    const RepeatedRuns::Seen seen = repeated_ && !gaussian.centre.defined()
                                        ? by_kernel(query, step, runs, first, count, keeps || want_weights)
                                        : by_algebra(query, step, runs, first, count, gaussian);
    if (keeps)
      for (size_t r = 0; r < step.tokens.size(); ++r)
        std::copy_n(seen.weights.value().data() + static_cast<int64_t>(r) * seen.weights.size(1), count[r],
                    weights_.data() + step.tokens[r] * weights_.size(1));
    return seen;
  }

 private:
  RepeatedRuns::Seen by_kernel(const Var& query, const Step& step, const KeyRuns& runs,
                               std::vector<int32_t> first, std::vector<int32_t> count, bool want_weights) {
    // All sentences' keys, so that their gradient is one buffer for all steps; those that have ended ask nothing.
    KeyRuns now{.query_begin = std::vector<int64_t>(runs.query_begin.size()),
                .key_begin = runs.key_begin,
                .first = std::move(first),
                .count = std::move(count)};
    for (const int32_t s : step.sentences) now.query_begin[static_cast<size_t>(s) + 1] = 1;
    std::partial_sum(now.query_begin.begin(), now.query_begin.end(), now.query_begin.begin());
    now.measure();
    return (*repeated_)(query, now, want_weights);
  }
  RepeatedRuns::Seen by_algebra(const Var& query, const Step& step, const KeyRuns& runs,
                                std::span<const int32_t> first, std::span<const int32_t> count,
                                const RunGaussian& gaussian) {
    if (counts_choices_) {
      context_.rows_of_example.assign(runs.query_begin.size() - 1, 0);
      for (const int32_t s : step.sentences) context_.rows_of_example[static_cast<size_t>(s)] = 1;
    }
    std::vector<QueryPlace> places;
    if (place_terms_ != nullptr)
      for (size_t r = 0; r < step.tokens.size(); ++r) {
        const auto s = static_cast<size_t>(step.sentences[r]);
        places.push_back(place_at(step.tokens[r] - runs.query_begin[s], runs.key_begin[s],
                                  runs.key_begin[s + 1] - runs.key_begin[s]));
      }
    ChosenRuns seen = attend_runs_by(
        selection_, {query, keys_, values_, first, count, score_, gaussian, place_terms_, places}, context_,
        weights_.defined());
    entropy_ = seen.entropy;
    return {seen.out, seen.weights.defined() ? Var(seen.weights) : Var()};
  }

  const Selection& selection_;
  const RunScore& score_;
  const Var &keys_, &values_;
  Context& context_;
  const PlaceTerms* place_terms_;
  std::optional<RepeatedRuns> repeated_;  // where the kernel can compute it
  Tensor weights_;
  Var entropy_;
  bool counts_choices_;
};

// The gates of PyTorch's GRU, r z n: before and from_state are [rows, 3 H].
Var gru_state(const Var& before, const Var& from_state, const Var& h) {
  const int64_t hidden = h.size(1);
  const Var r = sigmoid(columns(before, 0, hidden) + columns(from_state, 0, hidden));
  const Var z = sigmoid(columns(before, hidden, hidden) + columns(from_state, hidden, hidden));
  const Var n = tanh(columns(before, 2 * hidden, hidden) + r * columns(from_state, 2 * hidden, hidden));
  return n + z * (h - n);
}

std::optional<RepeatedLinear> repeated(const Var& weight, const Var& bias) {
  return weight.defined() ? std::optional<RepeatedLinear>(std::in_place, weight, bias) : std::nullopt;
}

}  // namespace

AttentiveStates attentive_gru(const AttentiveGru& decoder, const KeyRuns& runs,
                              const DecoderAttention& attention, Context& context, bool want_weights) {
  if (attention.fused(context)) return fovea::attentive_gru(decoder, runs, want_weights);
  context.rows_of_example.assign(runs.query_begin.size() - 1, 1);
  return attentive_gru_by_steps(decoder, runs, attention, context, want_weights);
}

FedStates attentive_lstm(const AttentiveLstm& decoder, KeyRuns& runs, const DecoderAttention& attention,
                         Context& context, bool want_weights) {
  if (attention.fused(context)) return fovea::attentive_lstm(decoder, runs, want_weights);
  context.rows_of_example.assign(runs.query_begin.size() - 1, 1);
  return attentive_lstm_by_steps(decoder, runs, attention, context, want_weights);
}

AttentiveStates attentive_gru_by_steps(const AttentiveGru& decoder, const KeyRuns& runs,
                                       const DecoderAttention& attention, Context& context,
                                       bool want_weights) {
  const int64_t hidden = decoder.weight.size(1), extra = decoder.values.size(1) - 3 * hidden;
  const std::vector<Step> steps = steps_of(runs);
  StepAttention attend_step(attention.selection(), decoder.score, decoder.keys, decoder.values, context,
                            attention.place_terms());
  if (want_weights) attend_step.keep_weights(runs);
  const RepeatedLinear from_state(decoder.weight, decoder.bias);
  const std::optional<RepeatedLinear> query_of = repeated(decoder.query_weight, decoder.query_bias);
  Var h = decoder.state;
  std::vector<Var> states, contexts;
  for (const Step& step : steps) {
    h = gather(h, step.before);
    const Var seen = attend_step(query_of ? (*query_of)(h) : h, step, runs, {}).out;
    const Var before = gather(decoder.products, step.tokens) + columns(seen, 0, 3 * hidden);
    h = gru_state(before, from_state(h), h);
    states.push_back(h);
    contexts.push_back(columns(seen, 3 * hidden, extra));
  }
  return {in_order(states, steps, runs.queries()), in_order(contexts, steps, runs.queries()),
          attend_step.weights()};
}

FedStates attentive_lstm_by_steps(const AttentiveLstm& decoder, KeyRuns& runs,
                                  const DecoderAttention& attention, Context& context, bool want_weights) {
  const std::vector<Step> steps = steps_of(runs);
  const auto layers = static_cast<int64_t>(decoder.layers.size());
  const int64_t sentences = decoder.h.size(1), hidden = decoder.h.size(2);
  StepAttention attend_step(attention.selection(), decoder.score, decoder.keys, decoder.values, context,
                            attention.place_terms());
  if (want_weights) attend_step.keep_weights(runs);
  std::vector<LstmState> state;
  for (int64_t l = 0; l < layers; ++l)
    state.push_back({reshape(slice(decoder.h, 0, l, 1), {sentences, hidden}),
                     reshape(slice(decoder.c, 0, l, 1), {sentences, hidden})});
  struct Products {
    RepeatedLinear input, state;
  };
  std::vector<Products> products;
  for (const AttentiveLstm::Layer& layer : decoder.layers)
    products.push_back({RepeatedLinear(layer.input, layer.bias), RepeatedLinear(layer.state)});
  const RepeatedLinear combine(decoder.combine);
  const std::optional<RepeatedLinear> query_of = repeated(decoder.query_weight, decoder.query_bias);
  Var fed(Tensor::zeros({sentences, hidden}));
  std::vector<Var> states;
  for (const Step& step : steps) {
    fed = gather(fed, step.before);
    Var x = fed;
    for (int64_t l = 0; l < layers; ++l) {
      const AttentiveLstm::Layer& layer = decoder.layers[static_cast<size_t>(l)];
      LstmState& own = state[static_cast<size_t>(l)];
      own = {gather(own.h, step.before), gather(own.c, step.before)};
      if (l > 0 && decoder.dropout > 0)
        x = dropout(x, decoder.dropout, layer.seed + static_cast<uint64_t>(states.size()));
      const Products& of = products[static_cast<size_t>(l)];
      own = lstm_gates(of.input(x), of.state(own.h), l == 0 ? gather(decoder.products, step.tokens) : Var(),
                       own.c);
      x = own.h;
    }
    RunGaussian gaussian;
    if (decoder.position_weight.defined())
      gaussian = attention.predict_step(x, step.sentences, step.tokens, runs);
    const Var seen = attend_step(query_of ? (*query_of)(x) : x, step, runs, gaussian).out;
    fed = tanh(seen + combine(x));
    states.push_back(fed);
  }
  runs.measure();
  return {in_order(states, steps, runs.queries()), attend_step.weights()};
}

namespace {

// The rows that continue from the step before.
Var continued(const Var& state, const Step& step) {
  return static_cast<int64_t>(step.before.size()) == state.size(0) ? state : gather(state, step.before);
}

// All that a step asks of the state, one below the other: the LSTM's gates, the query, the gate.
RepeatedLinear from_state_of(const GatedLstm& decoder) {
  std::vector<Var> weights{decoder.state}, biases{Var(Tensor::zeros({decoder.state.size(0)}))};
  const auto add = [&](const Var& part, const Var& part_bias) {
    if (!part.defined()) return;
    weights.push_back(part);
    biases.push_back(part_bias.defined() ? part_bias : Var(Tensor::zeros({part.size(0)})));
  };
  add(decoder.query_weight, decoder.query_bias);
  add(decoder.gate_weight, decoder.gate_bias);
  return RepeatedLinear(concat(weights, 0), concat(biases, 0));
}

}  // namespace

GatedStates gated_lstm_by_steps(const GatedLstm& decoder, const KeyRuns& runs, Context& context,
                                bool want_weights) {
  const int64_t gates = decoder.state.size(0), width = decoder.context.size(1),
                extra = decoder.values.size(1) - width;
  const int64_t query = decoder.query_weight.defined() ? decoder.query_weight.size(0) : 0;
  FOVEA_ASSERT(gates == 4 * decoder.h.size(1) && extra >= 0);
  const std::vector<Step> steps = steps_of(runs);
  // At use nothing is drawn and nothing dropped: soft with dropout is the plain softmax.
  const Selection selection =
      decoder.selection.kind == SelectionKind::soft && !context.training ? soft() : decoder.selection;
  StepAttention attend_step(selection, decoder.score, decoder.keys, decoder.values, context);
  if (want_weights) attend_step.keep_weights(runs);
  const RepeatedLinear from_state = from_state_of(decoder), from_context(decoder.context);
  const bool weights = decoder.trained_weights;
  FOVEA_ASSERT(!weights || (extra == 0 && selection == soft()));
  LstmState own{decoder.h, decoder.c};
  GatedStates result;
  if (want_weights && decoder.gate_weight.defined()) result.gates = Tensor({runs.queries()});
  std::vector<Var> states, contexts, extras, entropies;
  for (const Step& step : steps) {
    own = {continued(own.h, step), continued(own.c, step)};
    const Var from = from_state(own.h);
    const auto [seen, of_step] =
        attend_step(query > 0 ? columns(from, gates, query) : own.h, step, runs, {}, weights);
    Var z = extra > 0 ? columns(seen, 0, width) : seen;
    if (decoder.gate_weight.defined()) {
      const Var beta = sigmoid(columns(from, gates + query, 1));
      z = z * beta;
      if (result.gates.defined())
        for (size_t r = 0; r < step.tokens.size(); ++r)
          result.gates.data()[step.tokens[r]] = beta.value().data()[r];
    }
    own = lstm_gates(gather(decoder.products, step.tokens), columns(from, 0, gates), from_context(z), own.c);
    states.push_back(own.h);
    contexts.push_back(z);
    if (extra > 0) extras.push_back(columns(seen, width, extra));
    if (weights) extras.push_back(of_step);
    if (attend_step.entropy().defined()) entropies.push_back(attend_step.entropy());
  }
  result.states = in_order(states, steps, runs.queries());
  result.context = in_order(contexts, steps, runs.queries());
  result.extra = in_order(extras, steps, runs.queries());
  result.entropy = in_order(entropies, steps, runs.queries());
  result.weights = attend_step.weights();
  return result;
}

}  // namespace fovea::nn
