// attend(): checks a call, reduces its score to a dot product or additive form, compiles the plan, runs the kernels and
// records the gradients.
#include "attention/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "attention/attend_masked.h"
#include "attention/check_call.h"
#include "attention/compile.h"
#include "attention/kernel_call.h"
#include "autograd/ops_linear.h"
#include "autograd/ops_norm.h"
#include "autograd/ops_rows.h"
#include "autograd/ops_shape.h"
#include "kernels/attention/block_attention.h"
#include "kernels/attention/row_attention.h"

namespace fovea {
namespace {

using kernels::AttentionRowsBackward;
using kernels::BiasView;
using kernels::HeadView;
using kernels::ScoreFamily;

thread_local AttentionObserver* t_observer = nullptr;

template <class T>
HeadView<T> head_view(const Tensor& t) {
  return {t.data(), t.stride(0), t.stride(1), t.stride(2)};
}

// The tensor itself where kernels can read it in place, else a copy.
Tensor readable(const Tensor& t) {
  return t.size(-1) <= 1 || t.stride(-1) == 1 ? t : t.clone();
}

// Strides of a tensor broadcast to [B, H, Nq, Nk].
template <class T>
BiasView<T> bias_view(const Tensor& t) {
  int64_t strides[4] = {};
  for (int i = 0; i < t.rank(); ++i) strides[4 - t.rank() + i] = t.size(i) == 1 ? 0 : t.stride(i);
  return {t.data(), strides[0], strides[1], strides[2], strides[3]};
}

// A problem in one of the two kernel families: what is left when the score's own matrices are multiplied in.
struct Problem {
  Var q, k, v, score_vector = {};
  KernelScore score = {};
};

// Shapes of the parameters that are given.
ParameterShapes shapes_of(const AttentionParameters& p) {
  const auto shape = [](const Var& parameter) {
    return parameter.defined() ? std::optional(parameter.shape()) : std::nullopt;
  };
  return {.W = shape(p.W),
          .U = shape(p.U),
          .b = shape(p.b),
          .v = shape(p.v),
          .bias = shape(p.bias),
          .slopes = shape(p.slopes),
          .relative = shape(p.relative),
          .position = shape(p.position),
          .sink = shape(p.sink)};
}

// projected: as in AttentionRequest.
Problem reduce_score(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec,
                     const AttentionParameters& p, bool projected) {
  Problem problem{.q = q, .k = k, .v = v};
  const int64_t d = q.size(-1), dk = k.size(-1);
  switch (spec.score.kind) {
    case ScoreKind::dot:
    case ScoreKind::scaled_dot:
      problem.score.scale = score_scale(spec.score, d);
      break;
    case ScoreKind::cosine:
      problem.q = unit_rows(q);
      problem.k = unit_rows(k);
      problem.score.scale = 1 / (spec.score.number != 0 ? spec.score.number : 1);
      break;
    case ScoreKind::bilinear:
      if (!projected) problem.q = matmul(q, p.W);
      break;
    case ScoreKind::additive:
      if (!projected) {
        problem.q = linear(q, p.U, p.b);
        problem.k = linear(k, p.W);
      }
      problem.score_vector = p.v;
      problem.score.family = ScoreFamily::additive;
      break;
    case ScoreKind::concat:
      if (!projected) {
        problem.q = linear(q, slice(p.W, 1, dk, d), p.b);
        problem.k = linear(k, slice(p.W, 1, 0, dk));
      }
      problem.score_vector = p.v;
      problem.score.family = ScoreFamily::additive;
      break;
    case ScoreKind::location: {
      std::vector<int32_t> places;
      for (int64_t j = 0; j < k.size(2); ++j)
        places.push_back(static_cast<int32_t>(key_place(spec.pattern, j)));
      std::vector<int32_t> all;
      for (int64_t copy = 0; copy < k.size(0) * k.size(1); ++copy)
        all.insert(all.end(), places.begin(), places.end());
      problem.k = reshape(gather(p.W, all), {k.size(0), k.size(1), k.size(2), d});
      break;
    }
  }
  return problem;
}

// Everything a call's kernels read, kept alive together for the backward pass.
struct Job {
  Problem problem;
  AttentionParameters parameters;
  Tensor q, k, v, bias, slopes, relative, position, sink, score_vector;
  std::unique_ptr<KernelCall> call;
  Tensor out, lse;
};

// The memory of a dense array, or null where there is none; `kept` keeps it alive.
const float* dense(const Var& parameter, Tensor& kept) {
  if (!parameter.defined()) return nullptr;
  kept = parameter.value().contiguous();
  return kept.data();
}

std::shared_ptr<Job> make_job(Problem problem, const AttentionSpec& spec, const AttentionRequest& request,
                              const AttentionSizes& s, const KeyMask* mask) {
  const auto job = std::make_shared<Job>();
  const AttentionParameters& p = request.parameters;
  job->problem = std::move(problem);
  job->parameters = p;
  job->q = readable(job->problem.q.value());
  job->k = readable(job->problem.k.value());
  job->v = readable(job->problem.v.value());
  KernelArrays arrays{.shape = {s.batch, s.heads, s.kv_heads, s.queries, s.keys, job->q.size(-1), s.dv},
                      .q = head_view<const float>(job->q),
                      .k = head_view<const float>(job->k),
                      .v = head_view<const float>(job->v),
                      .slopes = dense(p.slopes, job->slopes),
                      .relative = dense(p.relative, job->relative),
                      .position = dense(p.position, job->position),
                      .sink = dense(p.sink, job->sink),
                      .score_vector = dense(job->problem.score_vector, job->score_vector)};
  if (p.bias.defined()) {
    job->bias = p.bias.value();
    arrays.bias = bias_view<const float>(job->bias);
  }
  const PlanSizes sizes{.queries = s.queries, .keys = s.keys, .batch = s.batch, .heads = s.heads};
  auto plan = mask == nullptr
                  ? compiled(spec.pattern, sizes)
                  : std::make_shared<const kernels::AttentionPlan>(compile(spec.pattern, sizes, mask));
  job->call = std::make_unique<KernelCall>(spec, job->problem.score, arrays, std::move(plan), request.seed);
  return job;
}

KernelCall::Results results_of(const Job& job) {
  KernelCall::Results results;
  if (job.out.defined()) results.out = head_view<float>(job.out);
  if (job.lse.defined()) results.lse = job.lse.data();
  return results;
}

// What parents' gradients are collected into, and given to them at the end.
class GradientSinks {
 public:
  // Overwritten by the kernel; null when the parent wants none.
  HeadView<float> heads(const Var& parent, const Tensor& like) {
    if (!parent.requires_grad()) return {};
    return head_view<float>(keep(parent, Tensor::laid_out_like(like)));
  }
  // Added to by the kernel.
  float* sums(const Var& parent) {
    return parent.requires_grad() ? keep(parent, Tensor::zeros(parent.shape())).data() : nullptr;
  }
  BiasView<float> bias(const Var& parent, const KernelCall& call) {
    if (!parent.requires_grad()) return {};
    const Tensor& gradient = keep(parent, Tensor(parent.shape()));
    const BiasView<float> view = bias_view<float>(gradient);
    if (!call.overwrites_bias(view)) gradient.fill(0);
    return view;
  }
  void deliver() {
    for (const auto& [parent, gradient] : kept_) parent.add_grad(gradient);
  }

 private:
  const Tensor& keep(const Var& parent, Tensor gradient) {
    kept_.reserve(16);
    kept_.emplace_back(parent, std::move(gradient));
    return kept_.back().second;
  }
  std::vector<std::pair<Var, Tensor>> kept_;
};

void run_backward(const Job& job, const Tensor& d_out, const Tensor& d_log_probability,
                  const Tensor& d_entropy) {
  const AttentionParameters& p = job.parameters;
  GradientSinks sinks;
  AttentionRowsBackward backward;
  backward.d_out = head_view<const float>(d_out);
  backward.dq = sinks.heads(job.problem.q, job.q);
  backward.dk = sinks.heads(job.problem.k, job.k);
  backward.dv = sinks.heads(job.problem.v, job.v);
  backward.d_bias = sinks.bias(p.bias, *job.call);
  backward.d_alibi = sinks.sums(p.slopes);
  backward.d_sink = sinks.sums(p.sink);
  backward.d_score_vector = sinks.sums(job.problem.score_vector);
  backward.d_relative = sinks.sums(p.relative);
  backward.d_centre = sinks.sums(p.position);
  if (d_log_probability.defined()) backward.d_log_probability = d_log_probability.data();
  if (d_entropy.defined()) backward.d_entropy = d_entropy.data();
  job.call->backward(backward, results_of(job));
  sinks.deliver();
}

Tensor chosen_weights(const Job& job, const std::vector<int32_t>& heads, const std::vector<int32_t>& rows) {
  const kernels::AttentionShape& s = job.call->shape();
  check_chosen_weights(heads, s.heads, "head");
  check_chosen_weights(rows, s.queries, "row");
  const Tensor weights =
      Tensor::zeros({s.batch, static_cast<int64_t>(heads.size()), static_cast<int64_t>(rows.size()), s.keys});
  job.call->weights({weights.data(), heads.data(), static_cast<int64_t>(heads.size()), rows.data(),
                     static_cast<int64_t>(rows.size())});
  return weights;
}

// The heads or rows that are named, or all.
std::vector<int32_t> named_or_all(const std::vector<int32_t>& named, int64_t count) {
  if (!named.empty()) return named;
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void show(const Job& job, const AttentionSpec& spec, const AttentionRequest& request) {
  const kernels::AttentionShape& s = job.call->shape();
  const AttentionObserver::Call call{request.name, spec, s.batch, s.heads, s.queries, s.keys, request.site};
  const AttentionObserver::Capture capture = t_observer->capture(call);
  if (capture.heads.empty() || capture.rows.empty()) return;
  t_observer->observe(call, capture, {chosen_weights(job, capture.heads, capture.rows), job.lse});
}

}  // namespace

void check_chosen_weights(const std::vector<int32_t>& chosen, int64_t count, std::string_view what) {
  for (size_t i = 0; i < chosen.size(); ++i) {
    require(chosen[i] >= 0 && chosen[i] < count, "attention: weights of ", what, " ", chosen[i],
            " were requested; there are ", count);
    require(i == 0 || chosen[i - 1] < chosen[i], "attention: the ", what,
            "s whose weights are requested must ascend");
  }
}

AttentionSpec acting_spec(const AttentionSpec& spec, bool training) {
  AttentionSpec acting = spec;
  if (training) return acting;
  switch (spec.selection.kind) {
    case SelectionKind::soft:
      acting.selection.dropout = 0;
      break;
    case SelectionKind::hard:
    case SelectionKind::gumbel:
      acting.selection = argmax();
      break;
    case SelectionKind::argmax:
    case SelectionKind::top_k:
    case SelectionKind::sparsemax:
    case SelectionKind::sigmoid:
    case SelectionKind::identity:
      break;
  }
  return acting;
}

AttentionResult attend(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec,
                       const AttentionRequest& request) {
  return attend_masked(q, k, v, spec, request, nullptr);
}

AttentionResult attend_masked(const Var& q, const Var& k, const Var& v, const AttentionSpec& wanted,
                              const AttentionRequest& request, const KeyMask* mask) {
  const AttentionSizes s = attention_sizes(q.shape(), k.shape(), v.shape());
  check(wanted);
  check_parameters(wanted, shapes_of(request.parameters), s, request.projected);
  const AttentionSpec spec = acting_spec(wanted, request.training);
  const auto job =
      make_job(reduce_score(q, k, v, spec, request.parameters, request.projected), spec, request, s, mask);
  const AttentionParameters& p = job->parameters;
  const Problem& problem = job->problem;
  const bool hard = spec.selection.kind == SelectionKind::hard;
  const std::vector<Var> parents{problem.q,  problem.k,  problem.v, problem.score_vector, p.bias, p.slopes,
                                 p.relative, p.position, p.sink};
  const bool fused = job->call->fused(), differentiate = recording(std::span<const Var>(parents));

  AttentionResult result;
  const Shape rows{s.batch, s.heads, s.queries};
  job->out = Tensor({s.batch, s.queries, s.heads, s.dv}).transpose(1, 2);
  if (request.lse || t_observer != nullptr || (fused && differentiate)) job->lse = Tensor(rows);
  KernelCall::Results written = results_of(*job);
  Tensor log_probability, entropy;
  if (hard) {
    log_probability = Tensor(rows);
    entropy = Tensor(rows);
    written.log_probability = log_probability.data();
    written.entropy = entropy.data();
  }
  if (hard || spec.selection.kind == SelectionKind::argmax) {
    result.chosen.resize(static_cast<size_t>(rows.count()));
    written.chosen = result.chosen.data();
  }
  job->call->forward(written);
  if (request.weights || !request.weight_heads.empty() || !request.weight_rows.empty())
    result.weights = chosen_weights(*job, named_or_all(request.weight_heads, s.heads),
                                    named_or_all(request.weight_rows, s.queries));
  if (t_observer != nullptr) show(*job, spec, request);
  if (request.lse) result.lse = job->lse;

  std::vector<Tensor> values{job->out};
  if (hard) values.insert(values.end(), {log_probability, entropy});
  if (!fused) job->out = {};
  std::vector<Var> recorded = record_many(std::move(values), parents, [job](std::span<const Tensor> grads) {
    const kernels::AttentionShape& shape = job->call->shape();
    const Tensor d_out = grads[0].defined()
                             ? readable(grads[0])
                             : Tensor::zeros({shape.batch, shape.heads, shape.queries, shape.dv});
    run_backward(*job, d_out, grads.size() > 1 ? grads[1] : Tensor(), grads.size() > 2 ? grads[2] : Tensor());
  });
  result.output = std::move(recorded[0]);
  if (hard) {
    result.log_probability = std::move(recorded[1]);
    result.entropy = std::move(recorded[2]);
  }
  return result;
}

Var attention(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec,
              const AttentionParameters& parameters) {
  return attend(q, k, v, spec, {.parameters = parameters}).output;
}

Var reinforce_loss(const Var& log_probability, const Tensor& reward, const Tensor& baseline) {
  const Shape& shape = log_probability.shape();
  const int64_t count = std::max<int64_t>(1, shape.count());
  for (const Tensor* t : {&reward, &baseline}) {
    require(t->defined(), "reinforce_loss: got no reward or no baseline, wanted ", shape,
            " or a single number");
    require(t->count() == 1 || t->shape() == shape, "reinforce_loss: got a reward or baseline of shape ",
            t->shape(), ", wanted ", shape, " or a single number");
  }
  const auto at = [](const Tensor& t, int64_t i) { return t.count() == 1 ? *t.data() : t.data()[i]; };
  const Tensor advantage(shape), r = reward.contiguous(), b = baseline.contiguous();
  const Tensor log_p = log_probability.value().contiguous();
  double loss = 0;
  for (int64_t i = 0; i < shape.count(); ++i) {
    advantage.data()[i] = -(at(r, i) - at(b, i)) / static_cast<float>(count);
    loss += double{advantage.data()[i]} * log_p.data()[i];
  }
  return record(Tensor::scalar(static_cast<float>(loss)), {log_probability}, [=](const Tensor& grad) {
    const Tensor d = advantage.clone();
    for (float& x : d.span()) x *= grad.item();
    log_probability.add_grad(d);
  });
}

AttentionObserver* attention_observer() {
  return t_observer;
}

ObserveAttention::ObserveAttention(AttentionObserver& observer)
    : before_(std::exchange(t_observer, &observer)) {}
ObserveAttention::~ObserveAttention() {
  t_observer = before_;
}

}  // namespace fovea
