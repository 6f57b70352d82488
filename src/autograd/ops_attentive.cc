// Attention over runs of keys and the attentive GRU decoder, each with its gradient.
#include "autograd/ops_attentive.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "autograd/attentive_call.h"
#include "kernels/recurrent/attentive_gru.h"

namespace fovea {

using namespace attentive;

KeyRuns KeyRuns::sentences(std::span<const int64_t> queries, std::span<const int64_t> keys) {
  require(queries.size() == keys.size(), "attention: ", queries.size(), " sentences ask ", keys.size());
  KeyRuns runs;
  for (size_t s = 0; s < queries.size(); ++s) {
    const int64_t begin = runs.keys();
    runs.first.insert(runs.first.end(), static_cast<size_t>(queries[s]), static_cast<int32_t>(begin));
    runs.count.insert(runs.count.end(), static_cast<size_t>(queries[s]), static_cast<int32_t>(keys[s]));
    runs.query_begin.push_back(runs.queries() + queries[s]);
    runs.key_begin.push_back(begin + keys[s]);
  }
  runs.measure();
  return runs;
}

void KeyRuns::measure() {
  longest = count.empty() ? 0 : *std::max_element(count.begin(), count.end());
}

struct RepeatedRuns::Pass {
  Var k, v;
  RunScore score;
  Tensor keys, values, vector;
  Tensor exponentials;  // of the keys, where they are of use and small enough
  // What calls have left for the gradient of the keys.
  struct Call {
    KeyRuns runs;
    Tensor q, d_scores;
  };
  std::vector<Call> calls;

  void finish() {
    if (calls.empty()) return;
    std::vector<kernels::Runs> runs;
    std::vector<kernels::RunQueriesSeen> seen;
    for (const Call& call : calls) runs.push_back(kernel_runs(call.runs, {}, 0, call.d_scores));
    for (size_t i = 0; i < calls.size(); ++i)
      seen.push_back({&runs[i], calls[i].q.data(), calls[i].d_scores.data()});
    const Tensor dk(k.shape()), d_vector(vector.shape());
    kernels::RunScore exponential = kernel_score(score, k.size(1), vector);
    exponential.exponential = true;
    kernels::run_keys_gradient(exponential, seen, exponentials.data(), dk.data(), d_vector.data());
    pass(k, dk);
    pass(score.vector, d_vector);
    calls.clear();
  }
};

RepeatedRuns::RepeatedRuns(const Var& k, const Var& v, const RunScore& score)
    : RepeatedRuns(k, v, score, true) {}

RepeatedRuns::RepeatedRuns(const Var& k, const Var& v, const RunScore& score, bool repeated)
    : pass_(std::make_shared<Pass>(Pass{k, v, score, dense(k), dense(v), dense(score.vector), {}, {}})) {
  if (!repeated || score.family != kernels::ScoreFamily::additive) return;
  const Tensor made(k.shape());
  if (kernels::run_exponentials(pass_->keys.data(), made.data(), made.count())) pass_->exponentials = made;
  joint_ = record({}, {k, score.vector}, [pass = pass_](const Tensor&) { pass->finish(); });
}

RepeatedRuns::Seen RepeatedRuns::attend(const Var& q, const KeyRuns& runs, const RunGaussian& gaussian,
                                        bool want_weights) const {
  const Var &k = pass_->k, &v = pass_->v, &vector = pass_->score.vector, &centre = gaussian.centre;
  check_runs(runs);
  require(q.rank() == 2 && k.rank() == 2 && v.rank() == 2, "attention: got q ", q.shape(), ", k ", k.shape(),
          ", v ", v.shape(), ", wanted packed rows");
  const int64_t d = q.size(1), dv = v.size(1), queries = runs.queries();
  check_shape("q", q, {queries, d});
  check_shape("k", k, {runs.keys(), d});
  check_shape("v", v, {runs.keys(), dv});
  if (centre.defined()) check_shape("predicted positions", centre, {queries});
  struct Job {
    KeyRuns runs;
    Tensor q, centre, soft;
    bool exponential = false;
    kernels::AttentionRunsForward call{};
  };
  const auto job = std::make_shared<Job>(
      Job{.runs = runs, .q = dense(q), .centre = dense(centre), .soft = Tensor({queries, runs.longest})});
  if (pass_->exponentials.defined()) {
    const Tensor made(q.shape());
    job->exponential = kernels::run_exponentials(job->q.data(), made.data(), made.count());
    if (job->exponential) job->q = made;
  }
  const Tensor out({queries, dv});
  job->call = {.score = kernel_score(pass_->score, d, pass_->vector),
               .runs = kernel_runs(job->runs, job->centre, gaussian.sigma, job->soft),
               .dv = dv,
               .q = job->q.data(),
               .k = (job->exponential ? pass_->exponentials : pass_->keys).data(),
               .v = pass_->values.data(),
               .out = out.data()};
  job->call.score.exponential = job->exponential;
  kernels::attention_runs_forward(job->call);
  std::vector<Tensor> values{out};
  if (want_weights) values.push_back(weights_of(job->call.runs, queries));
  const Var parents[] = {q, k, v, vector, centre, joint_};
  const std::vector<Var> results =
      record_many(std::move(values), parents, [=, pass_of_calls = pass_](std::span<const Tensor> grads) {
        const Tensor dq(q.shape()), d_v = gradient_for(v);
        const Tensor d_vector = job->exponential ? Tensor() : gradient_for(vector);
        // Added to what is there: a decoder asks the same keys at every step.
        Tensor dk, d_scores;
        if (job->exponential)
          d_scores = Tensor(job->soft.shape());
        else
          dk = k.requires_grad() ? k.grad_buffer() : Tensor::zeros(k.shape());
        const Tensor d_centre = centre.defined() ? Tensor(centre.shape()) : Tensor();
        const Tensor d_out = grads[0].defined() ? grads[0].contiguous() : Tensor::zeros({queries, dv});
        const Tensor d_weights = grads.size() > 1 && grads[1].defined() ? grads[1].contiguous() : Tensor();
        kernels::attention_runs_backward({.forward = job->call,
                                          .d_out = d_out.data(),
                                          .d_weights = data_or_null(d_weights),
                                          .dq = dq.data(),
                                          .dk = data_or_null(dk),
                                          .dv = data_or_null(d_v),
                                          .d_vector = data_or_null(d_vector),
                                          .d_centre = data_or_null(d_centre),
                                          .add_dk = true,
                                          .d_scores = data_or_null(d_scores)});
        if (job->exponential) pass_of_calls->calls.push_back({std::move(job->runs), job->q, d_scores});
        pass(q, dq);
        pass(v, d_v);
        pass(vector, d_vector);
        pass(centre, d_centre);
      });
  return {results[0], want_weights ? results[1] : Var()};
}

SeenRuns attend_runs(const Var& q, const Var& k, const Var& v, const KeyRuns& runs, const RunScore& score,
                     const RunGaussian& gaussian, bool want_weights) {
  const RepeatedRuns::Seen seen = RepeatedRuns(k, v, score, false).attend(q, runs, gaussian, want_weights);
  return {seen.out, want_weights ? seen.weights.value() : Tensor()};
}

namespace {

// Places of the parents of a GRU decoder.
enum GruParent { kProducts, kState, kKeys, kValues, kWeight, kBias, kQuery, kQueryBias, kVector };

// A call and everything its kernels point at.
struct GruJob {
  std::vector<Var> parents;
  std::vector<Tensor> values;  // of the parents
  KeyRuns runs;
  std::vector<int64_t> lengths;
  Tensor soft, gates, queries, out, context;
  kernels::AttentiveGruForward call;

  const float* value(size_t place) const { return data_or_null(values[place]); }
};

void check_decoder(const AttentiveGru& decoder, const KeyRuns& runs) {
  check_runs(runs);
  const int64_t hidden = decoder.weight.size(1), d = decoder.keys.size(1);
  const auto sentences = static_cast<int64_t>(runs.query_begin.size()) - 1;
  check_shape("products", decoder.products, {runs.queries(), 3 * hidden});
  check_shape("first states", decoder.state, {sentences, hidden});
  check_shape("keys", decoder.keys, {runs.keys(), d});
  check_shape("the state's weight", decoder.weight, {3 * hidden, hidden});
  require(decoder.values.size(1) >= 3 * hidden && decoder.values.size(0) == runs.keys(),
          "attention: got values of shape ", decoder.values.shape(), ", wanted [", runs.keys(), ", at least ",
          3 * hidden, "]");
  check_query(decoder.query_weight, d, hidden);
}

std::shared_ptr<GruJob> make_job(const AttentiveGru& decoder, const KeyRuns& runs) {
  const int64_t hidden = decoder.weight.size(1), d = decoder.keys.size(1), steps = runs.queries();
  const int64_t extra = decoder.values.size(1) - 3 * hidden;
  const auto job = std::make_shared<GruJob>();
  job->parents = {decoder.products,     decoder.state,      decoder.keys,
                  decoder.values,       decoder.weight,     decoder.bias,
                  decoder.query_weight, decoder.query_bias, decoder.score.vector};
  for (const Var& parent : job->parents) job->values.push_back(dense(parent));
  job->runs = runs;
  job->lengths = step_counts(runs);
  job->soft = Tensor({steps, runs.longest});
  job->out = Tensor({steps, hidden});
  job->context = Tensor({steps, extra});
  if (recording(job->parents)) {
    job->gates = Tensor({steps, 4 * hidden});
    if (decoder.query_weight.defined()) job->queries = Tensor({steps, d});
  }
  job->call = {.hidden = hidden,
               .extra = extra,
               .lengths = job->lengths,
               .score = kernel_score(decoder.score, d, job->values[kVector]),
               .runs = kernel_runs(job->runs, {}, 0, job->soft),
               .products = job->value(kProducts),
               .h_first = job->value(kState),
               .keys = job->value(kKeys),
               .values = job->value(kValues),
               .weight = job->value(kWeight),
               .bias = job->value(kBias),
               .query_weight = job->value(kQuery),
               .query_bias = job->value(kQueryBias),
               .out = job->out.data(),
               .context = job->context.data(),
               .gates = data_or_null(job->gates),
               .queries = data_or_null(job->queries)};
  return job;
}

// d_out, d_context: undefined where no gradient arrived.
void backward(const GruJob& job, const Tensor& d_out, const Tensor& d_context) {
  const int64_t hidden = job.call.hidden, steps = job.out.size(0);
  const Tensor d_seen({steps, 3 * hidden + job.call.extra}), states({steps, hidden});
  const Tensor d_queries =
      job.parents[kQuery].defined() ? Tensor({steps, job.parents[kKeys].size(1)}) : Tensor();
  std::vector<Tensor> gradients(job.parents.size());
  for (const size_t always : {kState, kKeys, kValues})
    gradients[always] = Tensor(job.parents[always].shape());
  for (const size_t place : {kWeight, kBias, kQuery, kQueryBias, kVector})
    gradients[place] = gradient_for(job.parents[place]);
  kernels::attentive_gru_backward({.forward = job.call,
                                   .d_out = data_or_null(d_out),
                                   .d_context = data_or_null(d_context),
                                   .d_seen = d_seen.data(),
                                   .d_h_first = gradients[kState].data(),
                                   .d_keys = gradients[kKeys].data(),
                                   .d_values = gradients[kValues].data(),
                                   .d_weight = data_or_null(gradients[kWeight]),
                                   .d_bias = data_or_null(gradients[kBias]),
                                   .d_query_weight = data_or_null(gradients[kQuery]),
                                   .d_query_bias = data_or_null(gradients[kQueryBias]),
                                   .d_vector = data_or_null(gradients[kVector]),
                                   .states = states.data(),
                                   .d_queries = data_or_null(d_queries)});
  gradients[kProducts] = d_seen.narrow(1, 0, 3 * hidden);
  for (size_t i = 0; i < gradients.size(); ++i) pass(job.parents[i], gradients[i]);
}

}  // namespace

AttentiveStates attentive_gru(const AttentiveGru& decoder, const KeyRuns& runs, bool want_weights) {
  check_decoder(decoder, runs);
  const std::shared_ptr<GruJob> job = make_job(decoder, runs);
  kernels::attentive_gru_forward(job->call);
  AttentiveStates result;
  if (want_weights) result.weights = weights_of(job->call.runs, runs.queries());
  // The backward pass does not read the context: only the result keeps it.
  const Tensor context = std::exchange(job->context, Tensor());
  const std::vector<Var> results =
      record_many({job->out, context}, job->parents, [job](std::span<const Tensor> grads) {
        const auto contiguous = [](const Tensor& grad) {
          return grad.defined() ? grad.contiguous() : Tensor();
        };
        backward(*job, contiguous(grads[0]), contiguous(grads[1]));
      });
  result.states = results[0];
  result.context = results[1];
  return result;
}

}  // namespace fovea
