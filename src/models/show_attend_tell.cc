// Show, Attend and Tell: soft and hard attention over places of a picture, losses, and decoding of captions.
#include "models/show_attend_tell.h"

#include <algorithm>
#include <cmath>

#include "attention/attention.h"
#include "autograd/ops.h"
#include "data/tokenizer.h"
#include "kernels/vector/elementwise.h"
#include "models/sentences.h"
#include "nn/attentive_steps.h"
#include "nn/choices.h"
#include "nn/init.h"
#include "nn/recurrent.h"

namespace fovea::models {
namespace {

using PartList = std::vector<nn::Projection::Part>;

// Nothing is learnt from words that the vocabulary lacks, so that captions do not say <unk>.
constexpr int32_t kIgnored = data::kUnknown;

const ShowAttendTellConfig& checked(const ShowAttendTellConfig& c) {
  check_ranges(c, "show_attend_tell");
  require(c.vocabulary > data::kSpecials, "show_attend_tell: a vocabulary of ", c.vocabulary,
          " tokens, wanted more than the ", data::kSpecials, " special ones");
  require(c.channels >= 1, "show_attend_tell: places of ", c.channels, " features, wanted at least 1");
  require(c.score != "location",
          "show_attend_tell: the score 'location' weighs places whatever they show; wanted one "
          "that looks at them, such as additive");
  return c;
}

// The features of each place, and after them a column for every place of the picture that is 1 at that place alone: what
// is seen of these columns are the weights, with their gradient.
Tensor with_places(const Tensor& features) {
  const int64_t pictures = features.size(0), places = features.size(1), channels = features.size(2);
  const Tensor values = Tensor::zeros({pictures * places, channels + places});
  for (int64_t i = 0; i < pictures * places; ++i) {
    float* const row = values.data() + i * (channels + places);
    std::copy_n(features.data() + i * channels, channels, row);
    row[channels + i % places] = 1;
  }
  return values;
}

}  // namespace

ShowAttendTell::ShowAttendTell(const ShowAttendTellConfig& config, Rng& rng)
    : first_h(checked(config).channels, config.width, rng),
      first_c(config.channels, config.width, rng),
      attention({.query_width = config.width,
                 .key_width = config.channels,
                 .spec = nn::alignment_spec({.score = config.score, .selection = config.attention}),
                 .hidden = config.attention_width},
                rng),
      config_(config),
      from_token_([this] {
        return PartList{{decoder.embedding, decoder.bias}};
      }),
      from_state_([this] {
        return PartList{
            {decoder.state}, {attention.query_weight(), attention.query_bias()}, {gate_weight, gate_bias}};
      }),
      from_context_([this] {
        return PartList{{decoder.context}, {readout.context}};
      }),
      read_state_([this] {
        return PartList{{readout.state, readout.bias}};
      }),
      key_([this] { return PartList{{attention.key_weight()}}; }) {
  const int64_t width = config.width, e = config.embedding, channels = config.channels;
  const auto table = [&] {
    return nn::normal({config.vocabulary, e}, 0, 1 / std::sqrt(static_cast<float>(e)), rng);
  };
  embedding_table = add_parameter("embedding", table());
  output = add_parameter("output", table());
  output_bias = add_parameter("output_bias", nn::constant({config.vocabulary}, 0));
  add_child("first_h", first_h);
  add_child("first_c", first_c);
  add_child("attention", attention);
  if (config.gate) {
    gate_weight = add_parameter("gate.weight", nn::xavier_uniform({1, width}, rng));
    gate_bias = add_parameter("gate.bias", nn::constant({1}, 0));
  }
  const float bound = 1 / std::sqrt(static_cast<float>(width));
  const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
    return add_parameter(name, nn::uniform({rows, columns}, -bound, bound, rng));
  };
  decoder.embedding = matrix("decoder.embedding", 4 * width, e);
  decoder.context = matrix("decoder.context", 4 * width, channels);
  decoder.state = matrix("decoder.state", 4 * width, width);
  decoder.bias = add_parameter("decoder.bias", nn::constant({4 * width}, 0));
  readout.state = matrix("readout.state", e, width);
  readout.context = matrix("readout.context", e, channels);
  readout.bias = add_parameter("readout.bias", nn::constant({e}, 0));
  // What a model that knows nothing loses: the draws of the first steps are then judged by more than their luck.
  baseline = add_buffer("baseline", nn::constant({1}, std::log(static_cast<float>(config.vocabulary))));
  for (nn::Projection* projection : {&from_token_, &from_state_, &from_context_, &read_state_})
    add_projection(*projection);
  if (attention.key_weight().defined()) add_projection(key_);
}

ShowAttendTell::Memory ShowAttendTell::encode(const Tensor& features, nn::Context&) const {
  require(features.rank() == 3 && features.size(2) == config_.channels,
          "show_attend_tell: got features of shape ", features.shape(), ", wanted [pictures, places, ",
          config_.channels, "]");
  const int64_t pictures = features.size(0), places = features.size(1);
  Memory memory;
  memory.places.assign(static_cast<size_t>(pictures), places);
  memory.values = Var(features.contiguous().reshape({pictures * places, config_.channels}));
  memory.keys = key_.in_use() != nullptr ? attention.finished_keys(key_(memory.values), memory.places)
                                         : attention.keys(memory.values, memory.places);
  const Var whole = mean(Var(features), 1);
  memory.h = tanh(first_h(whole));
  memory.c = tanh(first_c(whole));
  return memory;
}

ShowAttendTell::Pass ShowAttendTell::pass(const CaptionBatch& batch, const PassOptions& options,
                                          nn::Context& context) const {
  require(batch.features.rank() == 3 &&
              batch.features.size(0) == static_cast<int64_t>(batch.lengths.size()) &&
              std::is_sorted(batch.lengths.rbegin(), batch.lengths.rend()),
          "show_attend_tell: got features of shape ", batch.features.shape(), " for ", batch.lengths.size(),
          " captions, wanted one picture for each, the longest caption first");
  const Memory memory = encode(batch.features, context);
  const std::vector<int64_t> lengths(batch.lengths.begin(), batch.lengths.end());
  // What the kernel looks with gives its weights with their gradient; for other selections values have more columns.
  const bool trained_weights = options.weights && options.selection == soft();
  const Var embedded = dropped(embedding(embedding_table, batch.in), config_.dropout, context);
  const nn::GatedLstm steps{.products = from_token_(embedded),
                            .h = memory.h,
                            .c = memory.c,
                            .keys = memory.keys,
                            .values = options.weights && !trained_weights
                                          ? Var(with_places(batch.features.contiguous()))
                                          : memory.values,
                            .state = decoder.state,
                            .context = decoder.context,
                            .query_weight = attention.query_weight(),
                            .query_bias = attention.query_bias(),
                            .gate_weight = gate_weight,
                            .gate_bias = gate_bias,
                            .score = attention.score(),
                            .selection = options.selection,
                            .trained_weights = trained_weights};
  const KeyRuns runs = attention.runs(lengths, memory.places);
  context.rows_of_example.assign(lengths.size(), 1);
  const bool shown = options.shown || attention_observer() != nullptr;
  const nn::GatedStates y = nn::gated_lstm_by_steps(steps, runs, context, shown);
  if (shown) attention.show("decoder.cross", runs, y.weights);
  const Var read = tanh(read_state_(y.states) + linear(y.context, readout.context) + embedded);
  return {dropped(read, config_.dropout, context), y.extra, y.entropy, y.weights, y.gates};
}

// sum over captions and places of (1 - sum over words of the weight)^2, divided by the number of words.
Var ShowAttendTell::penalty(const Var& weights, const CaptionBatch& batch) const {
  const auto captions = static_cast<int64_t>(batch.lengths.size()), words = weights.size(0);
  const Tensor of_caption = Tensor::zeros({captions, words});
  int64_t word = 0;
  for (int64_t i = 0; i < captions; ++i)
    for (int32_t t = 0; t < batch.lengths[static_cast<size_t>(i)]; ++t)
      of_caption.data()[i * words + word++] = 1;
  const Var missing = 1.0f - matmul(Var(of_caption), weights);
  return sum(missing * missing) / static_cast<float>(words);
}

OutputLoss ShowAttendTell::loss(const CaptionBatch& batch, const CaptionLossOptions& options,
                                nn::Context& context) const {
  context.choices.clear();
  const Selection& own = attention.selection();
  const bool hard = context.training && own.kind == SelectionKind::hard;
  const bool draws = hard && context.rng.uniform() >= options.soft_share;
  const Pass seen = pass(batch,
                         {.selection = hard && !draws ? soft() : own,
                          .weights = context.training && !draws && options.penalty > 0},
                         context);
  OutputLoss result = linear_cross_entropy(seen.read, output, output_bias, batch.out,
                                           {.smoothing = options.smoothing, .ignored = kIgnored});
  if (seen.weights.defined()) result.loss = result.loss + options.penalty * penalty(seen.weights, batch);
  if (!draws) return result;
  const std::vector<float> losses = sequence_losses(seen.read, output_layer(), batch.out, batch.lengths,
                                                    {.smoothing = options.smoothing, .ignored = kIgnored});
  const float before = baseline.value().item();
  result.loss =
      result.loss + nn::choices_loss(context, losses, before) - options.entropy * mean(seen.entropy);
  double sum = 0;
  for (const float loss : losses) sum += loss;
  const auto now = static_cast<float>(sum / static_cast<double>(losses.size()));
  baseline.value().data()[0] = options.baseline_decay * before + (1 - options.baseline_decay) * now;
  return result;
}

CaptionModel::Trace ShowAttendTell::trace(const CaptionBatch& batch) const {
  const NoGrad no_grad;
  nn::Context use;
  Pass seen = pass(batch, {.selection = attention.selection(), .shown = true}, use);
  return {seen.shown, seen.gates};
}

void ShowAttendTell::State::reorder(std::span<const int32_t> parents) {
  h = nn::pick_rows(h, parents);
  c = nn::pick_rows(c, parents);
  places.reorder(parents);
}

ShowAttendTell::State ShowAttendTell::start(const Memory& memory) const {
  // Copies: a step changes states in place.
  return {memory.h.value().clone(), memory.c.value().clone(),
          nn::SentenceKeys(memory.keys.value(), memory.values.value(), memory.places)};
}

Tensor ShowAttendTell::step(State& state, std::span<const int32_t> tokens) const {
  check_step(tokens, state.places.rows());
  const int64_t gates = 4 * config_.width;
  const Var embedded = embedding(embedding_table, tokens);
  const Tensor from_state = from_state_(Var(state.h)).value();
  const kernels::RunScore score = nn::step_score(attention.score(), config_.width);
  const bool projects = attention.query_weight().defined();
  const Tensor query = projects ? nn::columns(from_state, gates, score.d) : state.h;
  std::vector<nn::SentenceKeys::Run> runs;
  for (int64_t r = 0; r < state.places.rows(); ++r)
    runs.push_back({{0, static_cast<int32_t>(state.places.keys_of(r))}});
  Var seen(state.places.attend({.score = score, .selection = attention.selection()}, query, runs));
  if (gate_weight.defined())
    seen = seen * sigmoid(Var(nn::columns(from_state, gates + (projects ? score.d : 0), 1)));
  const Tensor from_context = from_context_(seen).value();
  const Tensor before = from_token_(embedded).value(), seen_gates = nn::columns(from_context, 0, gates);
  kernels::axpy(1, seen_gates.data(), before.data(), before.count());
  nn::recurrent_step(RecurrentCell::lstm, before, from_state, state.h, state.c);
  const Var rest(nn::columns(from_context, gates, config_.embedding));
  return tanh(read_state_(Var(state.h)) + rest + embedded).value();
}

}  // namespace fovea::models
