// The attentive LSTM decoder with input feeding (Luong et al. 2015) as one op, with its gradient.
#include <algorithm>
#include <memory>

#include "autograd/attentive_call.h"
#include "kernels/recurrent/attentive_lstm.h"

namespace fovea {

using namespace attentive;

namespace {

// Places of the parents that come before the layers' own.
enum Place {
  kProducts,
  kH,
  kC,
  kKeys,
  kValues,
  kCombine,
  kQuery,
  kQueryBias,
  kVector,
  kPosition,
  kPositionVector
};
constexpr size_t kFixed = 11, kOfLayer = 3;

// A call and everything its kernels point at.
struct Job {
  std::vector<Var> parents;  // the fixed ones, then input, state and bias of each layer
  std::vector<Tensor> values;
  KeyRuns runs;
  std::vector<int64_t> lengths;
  std::vector<kernels::AttentiveLstmLayer> layers;
  std::vector<Tensor> kept;
  Tensor soft, centre, projected, out;
  kernels::AttentiveLstmForward call;

  const float* value(size_t place) const { return data_or_null(values[place]); }
  float* keep(const Shape& shape) { return kept.emplace_back(shape).data(); }
};

void backward(const Job& job, const Tensor& grad) {
  const auto count = static_cast<int64_t>(job.layers.size());
  std::vector<Tensor> gradients(job.parents.size());
  for (const size_t always : {kH, kC, kKeys, kValues})
    gradients[always] = Tensor(job.parents[always].shape());
  for (size_t place = kCombine; place < gradients.size(); ++place)
    gradients[place] = gradient_for(job.parents[place]);
  const int64_t state = job.parents[kH].size(1) * job.call.hidden;
  std::vector<kernels::AttentiveLstmLayerGradients> layers;
  for (int64_t l = 0; l < count; ++l) {
    const size_t own = kFixed + static_cast<size_t>(l) * kOfLayer;
    layers.push_back({.d_input = data_or_null(gradients[own]),
                      .d_state = data_or_null(gradients[own + 1]),
                      .d_bias = data_or_null(gradients[own + 2]),
                      .d_h_first = gradients[kH].data() + l * state,
                      .d_c_first = gradients[kC].data() + l * state});
  }
  const Tensor d_out = grad.contiguous(), work(job.out.shape());
  kernels::attentive_lstm_backward({.forward = job.call,
                                    .layers = layers,
                                    .d_out = d_out.data(),
                                    .d_keys = gradients[kKeys].data(),
                                    .d_values = gradients[kValues].data(),
                                    .d_vector = data_or_null(gradients[kVector]),
                                    .d_combine = data_or_null(gradients[kCombine]),
                                    .d_query_weight = data_or_null(gradients[kQuery]),
                                    .d_query_bias = data_or_null(gradients[kQueryBias]),
                                    .d_position_weight = data_or_null(gradients[kPosition]),
                                    .d_position_vector = data_or_null(gradients[kPositionVector]),
                                    .work = work.data()});
  gradients[kProducts] = job.kept[0];  // layer 0's gates
  for (size_t i = 0; i < gradients.size(); ++i) pass(job.parents[i], gradients[i]);
}

void check_decoder(const AttentiveLstm& decoder, const KeyRuns& runs) {
  check_runs(runs);
  const int64_t hidden = decoder.combine.size(0), d = decoder.keys.size(1);
  const auto sentences = static_cast<int64_t>(runs.query_begin.size()) - 1,
             count = static_cast<int64_t>(decoder.layers.size());
  check_shape("products", decoder.products, {runs.queries(), 4 * hidden});
  check_shape("first states h", decoder.h, {count, sentences, hidden});
  check_shape("first states c", decoder.c, {count, sentences, hidden});
  check_shape("keys", decoder.keys, {runs.keys(), d});
  check_shape("values", decoder.values, {runs.keys(), hidden});
  check_query(decoder.query_weight, d, hidden);
  for (const AttentiveLstm::Layer& layer : decoder.layers) {
    check_shape("a layer's input weight", layer.input, {4 * hidden, hidden});
    check_shape("a layer's state weight", layer.state, {4 * hidden, hidden});
  }
}

std::vector<Var> parents_of(const AttentiveLstm& decoder) {
  std::vector<Var> parents{decoder.products,
                           decoder.h,
                           decoder.c,
                           decoder.keys,
                           decoder.values,
                           decoder.combine,
                           decoder.query_weight,
                           decoder.query_bias,
                           decoder.score.vector,
                           decoder.position_weight,
                           decoder.position_vector};
  for (const AttentiveLstm::Layer& layer : decoder.layers)
    parents.insert(parents.end(), {layer.input, layer.state, layer.bias});
  return parents;
}

// keeps: what the backward pass reads.
void add_layers(Job& job, const AttentiveLstm& decoder, bool keeps) {
  const int64_t hidden = decoder.combine.size(0), steps = job.runs.queries(),
                state = decoder.h.size(1) * hidden;
  job.kept.reserve(3 * decoder.layers.size());
  for (size_t l = 0; l < decoder.layers.size(); ++l) {
    const size_t own = kFixed + l * kOfLayer;
    const auto first = static_cast<int64_t>(l) * state;
    kernels::AttentiveLstmLayer& layer = job.layers.emplace_back();
    layer = {.input = job.value(own),
             .state = job.value(own + 1),
             .bias = job.value(own + 2),
             .h_first = job.value(kH) + first,
             .c_first = job.value(kC) + first};
    if (l > 0) layer.dropout = {decoder.dropout, decoder.layers[l].seed};
    if (keeps) {
      layer.gates = job.keep({steps, 4 * hidden});
      layer.cells = job.keep({steps, hidden});
    }
    layer.states = job.keep({steps, hidden});
  }
}

kernels::StepAttention step_attention(Job& job, const AttentiveLstm& decoder, bool keeps) {
  const bool predicts = decoder.position_weight.defined();
  const int64_t hidden = decoder.combine.size(0), d = decoder.keys.size(1), steps = job.runs.queries();
  kernels::StepAttention attention{.score = kernel_score(decoder.score, d, job.values[kVector]),
                                   .runs = kernel_runs(job.runs, job.centre, decoder.sigma, job.soft),
                                   .keys = job.value(kKeys),
                                   .values = job.value(kValues),
                                   .combine = job.value(kCombine),
                                   .query_weight = job.value(kQuery),
                                   .query_bias = job.value(kQueryBias),
                                   .position_weight = job.value(kPosition),
                                   .position_vector = job.value(kPositionVector),
                                   .position_width = predicts ? decoder.position_vector.size(0) : 0,
                                   .window = decoder.window};
  if (predicts) {
    attention.first = job.runs.first.data();
    attention.count = job.runs.count.data();
    attention.centre = job.centre.data();
  }
  if (keeps) {
    job.projected = Tensor({steps, kernels::projected_width(attention, hidden)});
    attention.projected = job.projected.data();
  }
  return attention;
}

std::shared_ptr<Job> make_job(const AttentiveLstm& decoder, const KeyRuns& runs) {
  const int64_t hidden = decoder.combine.size(0), steps = runs.queries();
  const auto job = std::make_shared<Job>();
  job->parents = parents_of(decoder);
  for (const Var& parent : job->parents) job->values.push_back(dense(parent));
  const bool keeps = recording(job->parents);
  job->runs = runs;
  job->lengths = step_counts(runs);
  job->soft = Tensor({steps, runs.longest});
  job->out = Tensor({steps, hidden});
  if (decoder.position_weight.defined()) job->centre = Tensor(Shape{steps});
  add_layers(*job, decoder, keeps);
  job->call = {.hidden = hidden,
               .lengths = job->lengths,
               .layers = job->layers,
               .attention = step_attention(*job, decoder, keeps),
               .products = job->value(kProducts),
               .out = job->out.data()};
  return job;
}

}  // namespace

FedStates attentive_lstm(const AttentiveLstm& decoder, KeyRuns& runs, bool want_weights) {
  check_decoder(decoder, runs);
  const std::shared_ptr<Job> job = make_job(decoder, runs);
  kernels::attentive_lstm_forward(job->call);
  runs = job->runs;  // with the keys around predicted positions
  FedStates result;
  if (want_weights) result.weights = weights_of(job->call.attention.runs, runs.queries());
  result.states = record_many({job->out}, job->parents,
                              [job](std::span<const Tensor> grads) { backward(*job, grads[0]); })[0];
  return result;
}

}  // namespace fovea
