#include "attention/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "attention/compile.h"
#include "autograd/ops_linear.h"
#include "autograd/ops_norm.h"
#include "autograd/ops_rows.h"
#include "autograd/ops_shape.h"
#include "kernels/attention/block_attention.h"
#include "kernels/attention/row_attention.h"

namespace fovea {
namespace {

using kernels::AttentionPlan;
using kernels::AttentionRowsBackward;
using kernels::AttentionRowsForward;
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

Tensor default_slopes(int64_t heads) {
  const Tensor slopes(Shape{heads});
  for (int64_t h = 0; h < heads; ++h)
    slopes.data()[h] =
        static_cast<float>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads)));
  return slopes;
}

// A problem in one of the two kernel families: what is left when the score's own matrices are multiplied in.
struct Problem {
  Var q, k, v, score_vector = {};
  ScoreFamily family = ScoreFamily::dot;
  float scale = 1;
};

struct Sizes {
  int64_t batch, heads, kv_heads, queries, keys, d, dk, dv;
};

Sizes check_shapes(const Var& q, const Var& k, const Var& v) {
  require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention: got q ", q.shape(), ", k ", k.shape(),
          ", v ", v.shape(), ", wanted [batch, heads, tokens, features] each");
  const Sizes s{q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3), k.size(3), v.size(3)};
  require(k.size(0) == s.batch && v.size(0) == s.batch, "attention: batches differ: q ", q.shape(), ", k ",
          k.shape(), ", v ", v.shape());
  require(v.size(1) == s.kv_heads && v.size(2) == s.keys, "attention: got k ", k.shape(), " and v ",
          v.shape(), ", wanted the same heads and tokens");
  require(s.kv_heads > 0 && s.heads % s.kv_heads == 0, "attention: ", s.heads, " query heads cannot share ",
          s.kv_heads, " key heads; wanted a number that divides ", s.heads);
  require(std::max({s.batch, s.heads, s.queries, s.keys}) < int64_t{1} << 31, "attention: a size of ",
          std::max({s.batch, s.heads, s.queries, s.keys}), ", wanted less than 2^31");
  return s;
}

void check_parameter(const Var& parameter, bool wanted, std::string_view name, std::string_view owner) {
  require(parameter.defined() || !wanted, "attention: the spec names ", owner, ", but parameter ", name,
          " is not given");
  require(!parameter.defined() || wanted, "attention: parameter ", name,
          " is given, but the spec does not name ", owner);
}

void check_shape(const Var& parameter, const Shape& wanted, std::string_view name) {
  require(!parameter.defined() || parameter.shape() == wanted, "attention: parameter ", name, " has shape ",
          parameter.defined() ? parameter.shape() : Shape{}, ", wanted ", wanted);
}

void check_parameters(const AttentionSpec& spec, const AttentionRequest& request, const Sizes& s) {
  const AttentionParameters& p = request.parameters;
  const ScoreKind kind = spec.score.kind;
  const bool additive = kind == ScoreKind::additive, concat = kind == ScoreKind::concat;
  const bool projected = request.projected_keys;
  require(!projected || additive, "attention: projected_keys is for an additive score, got ", spec);
  require(!projected || !p.W.defined(),
          "attention: parameter W is given, but projected_keys says that k holds W k");
  const bool location = kind == ScoreKind::location;
  check_parameter(p.W, kind == ScoreKind::bilinear || (additive && !projected) || concat || location, "W",
                  "a bilinear, additive, concat or location score");
  check_parameter(p.U, additive, "U", "an additive score");
  check_parameter(p.v, additive || concat, "v", "an additive or concat score");
  if (p.b.defined()) check_parameter(p.b, additive || concat, "b", "an additive or concat score");
  check_parameter(p.bias, spec.terms.bias, "bias", "a bias");
  if (p.slopes.defined()) check_parameter(p.slopes, spec.terms.alibi, "slopes", "alibi");
  check_parameter(p.relative, spec.terms.relative.buckets != 0, "relative", "relative positions");
  check_parameter(p.position, spec.terms.gaussian != 0, "position", "a gaussian");
  check_parameter(p.sink, spec.terms.sink, "sink", "a sink");
  check_shape(p.slopes, {s.heads}, "slopes");
  check_shape(p.relative, {spec.terms.relative.buckets, s.heads}, "relative");
  check_shape(p.position, {s.batch, s.heads, s.queries}, "position");
  check_shape(p.sink, {s.heads}, "sink");
  if (kind == ScoreKind::bilinear) check_shape(p.W, {s.d, s.dk}, "W");
  if (location) {
    int64_t places = 0;
    for (int64_t j = 0; j < s.keys; ++j) places = std::max(places, key_place(spec.pattern, j) + 1);
    require(p.W.rank() == 2 && p.W.size(1) == s.d && p.W.size(0) >= places,
            "attention: parameter W has shape ", p.W.shape(), ", wanted [places, ", s.d, "] of at least the ",
            places, " places that keys stand at");
  }
  if (additive || concat) {
    require(p.v.rank() == 1, "attention: parameter v has shape ", p.v.shape(), ", wanted [hidden]");
    const int64_t hidden = p.v.size(0);
    check_shape(p.W, {hidden, concat ? s.dk + s.d : s.dk}, "W");
    check_shape(p.U, {hidden, s.d}, "U");
    require(!projected || s.dk == hidden, "attention: projected keys have ", s.dk, " features, wanted ",
            hidden, ", as many as parameter v");
    check_shape(p.b, {hidden}, "b");
  }
  if (kind == ScoreKind::dot || kind == ScoreKind::scaled_dot || kind == ScoreKind::cosine) {
    require(s.d == s.dk, "attention: q has ", s.d, " features and k has ", s.dk,
            "; a dot product wants the same, a bilinear or additive score does not");
  }
  if (p.bias.defined()) {
    const int64_t full[] = {s.batch, s.heads, s.queries, s.keys};
    bool fits = p.bias.rank() <= 4;
    for (int i = 0; fits && i < p.bias.rank(); ++i)
      fits = p.bias.size(i) == 1 || p.bias.size(i) == full[4 - p.bias.rank() + i];
    require(fits, "attention: parameter bias has shape ", p.bias.shape(), ", wanted one that broadcasts to ",
            Shape(std::span<const int64_t>(full)));
  }
}

Problem reduce_score(const Var& q, const Var& k, const Var& v, const AttentionSpec& spec,
                     const AttentionParameters& p) {
  Problem problem{.q = q, .k = k, .v = v};
  const int64_t d = q.size(-1), dk = k.size(-1);
  switch (spec.score.kind) {
    case ScoreKind::dot:
      break;
    case ScoreKind::scaled_dot:
      problem.scale = spec.score.number != 0
                          ? 1 / spec.score.number
                          : static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, d))));
      break;
    case ScoreKind::cosine:
      problem.q = unit_rows(q);
      problem.k = unit_rows(k);
      problem.scale = 1 / (spec.score.number != 0 ? spec.score.number : 1);
      break;
    case ScoreKind::bilinear:
      problem.q = matmul(q, p.W);
      break;
    case ScoreKind::additive:
      problem.q = linear(q, p.U, p.b);
      problem.k = p.W.defined() ? linear(k, p.W) : k;
      problem.score_vector = p.v;
      problem.family = ScoreFamily::additive;
      break;
    case ScoreKind::concat:
      problem.q = linear(q, slice(p.W, 1, dk, d), p.b);
      problem.k = linear(k, slice(p.W, 1, 0, dk));
      problem.score_vector = p.v;
      problem.family = ScoreFamily::additive;
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
  std::vector<int32_t> buckets;
  std::shared_ptr<const AttentionPlan> plan;
  AttentionRowsForward call;
  bool fused = false;  // the flash kernel does it
  Tensor diagonals;    // fused relative positions: [H, Nq + Nk - 1], a bias that is constant along diagonals
  Tensor out, lse;
};

std::shared_ptr<Job> make_job(Problem problem, const AttentionSpec& spec, const AttentionRequest& request,
                              const Sizes& s) {
  const auto job = std::make_shared<Job>();
  const AttentionParameters& p = request.parameters;
  job->problem = std::move(problem);
  job->parameters = p;
  job->q = readable(job->problem.q.value());
  job->k = readable(job->problem.k.value());
  job->v = readable(job->problem.v.value());
  job->plan =
      compiled(spec.pattern, {.queries = s.queries, .keys = s.keys, .batch = s.batch, .heads = s.heads});
  AttentionRowsForward& call = job->call;
  call.shape = {s.batch, s.heads, s.kv_heads, s.queries, s.keys, job->q.size(-1), s.dv};
  call.score = job->problem.family;
  call.terms.scale = job->problem.scale;
  call.terms.soft_cap = spec.terms.soft_cap;
  call.terms.dropout = spec.selection.dropout;
  call.terms.seed = request.seed;
  call.plan = job->plan.get();
  call.q = head_view<const float>(job->q);
  call.k = head_view<const float>(job->k);
  call.v = head_view<const float>(job->v);
  call.selection = {.kind = spec.selection.kind,
                    .tau = spec.selection.tau,
                    .straight_through = spec.selection.straight_through,
                    .k = spec.selection.k,
                    .seed = request.seed};
  if (spec.terms.alibi) {
    job->slopes = p.slopes.defined() ? p.slopes.value().contiguous() : default_slopes(s.heads);
    call.terms.alibi = job->slopes.data();
  }
  if (p.bias.defined()) {
    job->bias = p.bias.value();
    call.terms.bias = bias_view<const float>(job->bias);
  }
  if (p.sink.defined()) {
    job->sink = p.sink.value().contiguous();
    call.terms.sink = job->sink.data();
  }
  if (p.relative.defined()) {
    job->relative = p.relative.value().contiguous();
    job->buckets.resize(static_cast<size_t>(std::max<int64_t>(0, s.queries + s.keys - 1)));
    for (size_t i = 0; i < job->buckets.size(); ++i) {
      const int64_t key_minus_query = static_cast<int64_t>(i) - (s.queries - 1);
      job->buckets[i] =
          static_cast<int32_t>(relative_bucket(spec.terms.relative, key_minus_query - (s.keys - s.queries)));
    }
    call.relative = {.table = job->relative.data(),
                     .head = 1,
                     .step = s.heads,
                     .bucket = job->buckets.data(),
                     .bucket_count = spec.terms.relative.buckets};
  }
  if (p.position.defined()) {
    job->position = p.position.value().contiguous();
    call.gaussian = {.centre = job->position.data(), .sigma = spec.terms.gaussian};
  }
  if (job->problem.score_vector.defined()) {
    job->score_vector = job->problem.score_vector.value().contiguous();
    call.score_vector = job->score_vector.data();
  }
  job->fused = spec.selection.kind == SelectionKind::soft && call.score == ScoreFamily::dot &&
               !p.position.defined() && !(p.relative.defined() && p.bias.defined());
  if (job->fused && p.relative.defined()) {
    const auto length = static_cast<int64_t>(job->buckets.size());
    job->diagonals = Tensor({s.heads, length});
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < length; ++t)
        job->diagonals.data()[h * length + t] = job->relative.data()[job->buckets[t] * s.heads + h];
  }
  return job;
}

// Element (i, j) of diagonals stands at j - i + Nq - 1.
template <class T>
BiasView<T> diagonal_view(const Tensor& diagonals, const kernels::AttentionShape& s) {
  return {.data = s.queries > 0 && s.keys > 0 ? diagonals.data() + s.queries - 1 : nullptr,
          .batch = 0,
          .head = diagonals.size(1),
          .row = -1,
          .column = 1};
}

kernels::AttentionForward fused_call(const Job& job) {
  kernels::AttentionForward fused{.shape = job.call.shape,
                                  .terms = job.call.terms,
                                  .plan = job.call.plan,
                                  .q = job.call.q,
                                  .k = job.call.k,
                                  .v = job.call.v,
                                  .out = head_view<float>(job.out),
                                  .lse = job.lse.defined() ? job.lse.data() : nullptr};
  if (job.diagonals.defined()) fused.terms.bias = diagonal_view<const float>(job.diagonals, job.call.shape);
  return fused;
}

// Sums the gradient along each diagonal's bucket, in order.
void add_relative_gradient(const Job& job, const Tensor& d_diagonals) {
  const int64_t heads = d_diagonals.size(0), length = d_diagonals.size(1);
  const Tensor d_table = Tensor::zeros(job.parameters.relative.shape());
  for (int64_t h = 0; h < heads; ++h) {
    std::vector<double> sums(static_cast<size_t>(job.call.relative.bucket_count));
    for (int64_t t = 0; t < length; ++t) sums[job.buckets[t]] += d_diagonals.data()[h * length + t];
    for (size_t bucket = 0; bucket < sums.size(); ++bucket)
      d_table.data()[static_cast<int64_t>(bucket) * heads + h] = static_cast<float>(sums[bucket]);
  }
  job.parameters.relative.add_grad(d_table);
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
  BiasView<float> bias(const Var& parent) {
    return parent.requires_grad() ? bias_view<float>(keep(parent, Tensor::zeros(parent.shape())))
                                  : BiasView<float>{};
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
  backward.forward = job.call;
  backward.d_out = head_view<const float>(d_out);
  backward.dq = sinks.heads(job.problem.q, job.q);
  backward.dk = sinks.heads(job.problem.k, job.k);
  backward.dv = sinks.heads(job.problem.v, job.v);
  backward.d_bias = sinks.bias(p.bias);
  backward.d_alibi = sinks.sums(p.slopes);
  backward.d_sink = sinks.sums(p.sink);
  if (job.fused) {
    kernels::AttentionBackward fused;
    fused.forward = fused_call(job);
    fused.d_out = backward.d_out;
    fused.dq = backward.dq;
    fused.dk = backward.dk;
    fused.dv = backward.dv;
    fused.d_bias = backward.d_bias;
    fused.d_alibi = backward.d_alibi;
    fused.d_sink = backward.d_sink;
    Tensor d_diagonals;
    if (job.diagonals.defined() && p.relative.requires_grad()) {
      d_diagonals = Tensor::zeros(job.diagonals.shape());
      fused.d_bias = diagonal_view<float>(d_diagonals, job.call.shape);
    }
    kernels::attention_kernels().backward(fused);
    if (d_diagonals.defined()) add_relative_gradient(job, d_diagonals);
  } else {
    backward.d_score_vector = sinks.sums(job.problem.score_vector);
    backward.d_relative = sinks.sums(p.relative);
    backward.d_centre = sinks.sums(p.position);
    if (d_log_probability.defined()) backward.d_log_probability = d_log_probability.data();
    if (d_entropy.defined()) backward.d_entropy = d_entropy.data();
    kernels::attention_rows_backward(backward);
  }
  sinks.deliver();
}

void check_chosen(const std::vector<int32_t>& chosen, int64_t count, std::string_view what) {
  for (size_t i = 0; i < chosen.size(); ++i) {
    require(chosen[i] >= 0 && chosen[i] < count, "attention: weights of ", what, " ", chosen[i],
            " were asked for; there are ", count);
    require(i == 0 || chosen[i - 1] < chosen[i], "attention: the ", what,
            "s whose weights are asked for must ascend");
  }
}

Tensor chosen_weights(const Job& job, const std::vector<int32_t>& heads, const std::vector<int32_t>& rows) {
  const kernels::AttentionShape& s = job.call.shape;
  check_chosen(heads, s.heads, "head");
  check_chosen(rows, s.queries, "row");
  const Tensor weights =
      Tensor::zeros({s.batch, static_cast<int64_t>(heads.size()), static_cast<int64_t>(rows.size()), s.keys});
  AttentionRowsForward call = job.call;
  call.out = {};
  call.lse = nullptr;
  call.chosen = nullptr;
  call.log_probability = call.entropy = nullptr;
  call.weights = {weights.data(), heads.data(), static_cast<int64_t>(heads.size()), rows.data(),
                  static_cast<int64_t>(rows.size())};
  kernels::attention_rows_forward(call);
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
  const kernels::AttentionShape& s = job.call.shape;
  const AttentionObserver::Call call{request.name, spec, s.batch, s.heads, s.queries, s.keys, request.site};
  const AttentionObserver::Wish wish = t_observer->wish(call);
  if (wish.heads.empty() || wish.rows.empty()) return;
  t_observer->see(call, wish, {chosen_weights(job, wish.heads, wish.rows), job.lse});
}

// What a call does of its spec: at use, nothing is drawn.
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

}  // namespace

AttentionResult attend(const Var& q, const Var& k, const Var& v, const AttentionSpec& wanted,
                       const AttentionRequest& request) {
  const Sizes s = check_shapes(q, k, v);
  check(wanted);
  check_parameters(wanted, request, s);
  const AttentionSpec spec = acting_spec(wanted, request.training);
  const auto job = make_job(reduce_score(q, k, v, spec, request.parameters), spec, request, s);
  const AttentionParameters& p = job->parameters;
  const Problem& problem = job->problem;
  const bool hard = spec.selection.kind == SelectionKind::hard;
  const std::vector<Var> parents{problem.q,  problem.k,  problem.v, problem.score_vector, p.bias, p.slopes,
                                 p.relative, p.position, p.sink};
  const bool differentiate = recording(std::span<const Var>(parents));

  AttentionResult result;
  const Shape rows{s.batch, s.heads, s.queries};
  job->out = Tensor({s.batch, s.queries, s.heads, s.dv}).transpose(1, 2);
  job->call.out = head_view<float>(job->out);
  if (request.lse || t_observer != nullptr || (job->fused && differentiate)) {
    job->lse = Tensor(rows);
    job->call.lse = job->lse.data();
  }
  Tensor log_probability, entropy;
  if (job->fused) {
    kernels::attention_kernels().forward(fused_call(*job));
  } else {
    if (hard) {
      log_probability = Tensor(rows);
      entropy = Tensor(rows);
      job->call.log_probability = log_probability.data();
      job->call.entropy = entropy.data();
    }
    if (hard || spec.selection.kind == SelectionKind::argmax) {
      result.chosen.resize(static_cast<size_t>(rows.count()));
      job->call.chosen = result.chosen.data();
    }
    kernels::attention_rows_forward(job->call);
  }
  if (request.weights || !request.weight_heads.empty() || !request.weight_rows.empty())
    result.weights = chosen_weights(*job, named_or_all(request.weight_heads, s.heads),
                                    named_or_all(request.weight_rows, s.queries));
  if (t_observer != nullptr) show(*job, spec, request);
  if (request.lse) result.lse = job->lse;

  std::vector<Tensor> values{job->out};
  if (hard) values.insert(values.end(), {log_probability, entropy});
  if (!job->fused) job->out = {};
  std::vector<Var> recorded = record_many(std::move(values), parents, [job](std::span<const Tensor> grads) {
    const kernels::AttentionShape& shape = job->call.shape;
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
