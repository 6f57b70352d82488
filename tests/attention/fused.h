// Runs a problem of the oracle through attend(), the entry point that users call.
#pragma once

#include <vector>

#include "attention/attention.h"
#include "attention/reference.h"

namespace fovea::test {

// How the tensors lie in memory: dense, or as the strided views that a fused projection leaves.
enum class MemoryLayout { dense, projected };

inline Tensor to_tensor(const reference::Array& array, const Shape& shape) {
  const Tensor tensor(shape);
  for (size_t n = 0; n < array.size(); ++n) tensor.data()[n] = static_cast<float>(array[n]);
  return tensor;
}

// [B, H, N, D] as a view of [B, N, H, D + 3].
inline Tensor projected(const Tensor& dense) {
  const Tensor memory = Tensor::full({dense.size(0), dense.size(2), dense.size(1), dense.size(3) + 3}, NAN);
  const Tensor view = memory.narrow(3, 0, dense.size(3)).transpose(1, 2);
  view.copy_from(dense);
  return view;
}

inline reference::Array to_array(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_vector();
  return {values.begin(), values.end()};
}

struct FusedRun {
  AttentionResult result;
  reference::Inputs grad;  // gradients in the oracle's shapes; bias in its own shape
};

// Which dimensions of the bias [B, H, Nq, Nk] are 1.
struct BiasShape {
  bool batch = false, head = false, query = false, key = false;
};

inline Shape bias_shape(const reference::Inputs& in, const BiasShape& one) {
  return {one.batch ? 1 : in.batch, one.head ? 1 : in.heads, one.query ? 1 : in.queries,
          one.key ? 1 : in.keys};
}

// Sums the entries of a full bias array that a broadcast one shares; the same entry read back is a gather.
template <class F>
void for_each_bias(const reference::Inputs& in, const BiasShape& one, const F& f) {
  const Shape shape = bias_shape(in, one);
  int64_t full = 0;
  for (int64_t b = 0; b < in.batch; ++b)
    for (int64_t h = 0; h < in.heads; ++h)
      for (int64_t i = 0; i < in.queries; ++i)
        for (int64_t j = 0; j < in.keys; ++j, ++full) {
          const int64_t small =
              (((one.batch ? 0 : b) * shape[1] + (one.head ? 0 : h)) * shape[2] + (one.query ? 0 : i)) *
                  shape[3] +
              (one.key ? 0 : j);
          f(full, small);
        }
}

inline FusedRun run_fused(const AttentionSpec& spec, const reference::Inputs& in,
                          const reference::ResultGradients& d, MemoryLayout layout,
                          const BiasShape& one = {}) {
  const auto leaf = [](const reference::Array& array, const Shape& shape) {
    return array.empty() && shape.count() > 0 ? Var() : Var(to_tensor(array, shape), true);
  };
  const auto heads = [&](const reference::Array& array, const Shape& shape) {
    const Tensor dense = to_tensor(array, shape);
    return Var(layout == MemoryLayout::dense ? dense : projected(dense), true);
  };
  const Var q = heads(in.q, {in.batch, in.heads, in.queries, in.d});
  const Var k = heads(in.k, {in.batch, in.kv_heads, in.keys, in.dk});
  const Var v = heads(in.v, {in.batch, in.kv_heads, in.keys, in.dv});
  AttentionRequest request;
  AttentionParameters& p = request.parameters;
  const ScoreKind kind = spec.score.kind;
  if (kind == ScoreKind::location) p.W = leaf(in.w, {in.keys, in.d});
  if (kind == ScoreKind::bilinear) p.W = leaf(in.w, {in.d, in.dk});
  if (kind == ScoreKind::additive) p.W = leaf(in.w, {in.hidden, in.dk});
  if (kind == ScoreKind::concat) p.W = leaf(in.w, {in.hidden, in.dk + in.d});
  if (kind == ScoreKind::additive) p.U = leaf(in.u, {in.hidden, in.d});
  if (kind == ScoreKind::additive || kind == ScoreKind::concat) {
    p.b = leaf(in.b, {in.hidden});
    p.v = leaf(in.score_vector, {in.hidden});
  }
  if (spec.terms.bias) {
    const Tensor small(bias_shape(in, one));
    for_each_bias(in, one, [&](int64_t full, int64_t place) {
      small.data()[place] = static_cast<float>(in.bias[static_cast<size_t>(full)]);
    });
    p.bias = Var(small, true);
  }
  if (spec.terms.alibi) p.slopes = leaf(in.slopes, {in.heads});
  if (spec.terms.relative.buckets > 0) p.relative = leaf(in.table, {spec.terms.relative.buckets, in.heads});
  if (spec.terms.gaussian > 0) p.position = Var(to_tensor(in.centre, {in.batch, in.heads, in.queries}), true);
  if (spec.terms.sink) p.sink = leaf(in.sink, {in.heads});
  request.training = true;
  request.seed = in.seed;
  request.lse = true;
  request.weights = true;

  FusedRun run;
  run.result = attend(q, k, v, spec, request);
  const Var& out = run.result.output;
  const Var &log_probability = run.result.log_probability, &entropy = run.result.entropy;
  const Shape rows{in.batch, in.heads, in.queries};
  const Var total = record(Tensor::scalar(0), {out, log_probability, entropy}, [&](const Tensor&) {
    out.add_grad(to_tensor(d.out, out.shape()));
    if (log_probability.defined() && !d.log_probability.empty())
      log_probability.add_grad(to_tensor(d.log_probability, rows));
    if (entropy.defined() && !d.entropy.empty()) entropy.add_grad(to_tensor(d.entropy, rows));
  });
  total.backward();
  const auto gradient = [](const Var& leaf_var) {
    if (!leaf_var.defined()) return reference::Array{};
    const Tensor grad = leaf_var.grad();
    return grad.defined() ? to_array(grad) : reference::Array(static_cast<size_t>(leaf_var.count()));
  };
  run.grad.q = gradient(q);
  run.grad.k = gradient(k);
  run.grad.v = gradient(v);
  run.grad.w = gradient(p.W);
  run.grad.u = gradient(p.U);
  run.grad.b = gradient(p.b);
  run.grad.score_vector = gradient(p.v);
  run.grad.bias = gradient(p.bias);
  run.grad.slopes = gradient(p.slopes);
  run.grad.table = gradient(p.relative);
  run.grad.centre = gradient(p.position);
  run.grad.sink = gradient(p.sink);
  return run;
}

}  // namespace fovea::test
