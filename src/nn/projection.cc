#include "nn/projection.h"

#include <algorithm>

#include "autograd/ops_shape.h"
#include "autograd/tape.h"
#include "base/error.h"

namespace fovea::nn {
namespace {

// The parts as one.
Projection::Part joined(const std::vector<Projection::Part>& parts) {
  std::vector<Var> weights, biases;
  bool with_bias = false;
  for (const auto& [weight, bias] : parts) {
    if (!weight.defined()) continue;
    weights.push_back(weight);
    biases.push_back(bias.defined() ? bias : Var(Tensor::zeros({weight.size(0)})));
    with_bias |= bias.defined();
  }
  FOVEA_ASSERT(!weights.empty());
  if (weights.size() == 1) return {weights[0], with_bias ? biases[0] : Var()};
  return {concat(weights, 0), with_bias ? concat(biases, 0) : Var()};
}

}  // namespace

Var apply(const PreparedLinear& layer, const Var& x, Activation activation) {
  require(x.rank() >= 1 && x.size(-1) == layer.in(), "linear: got input of shape ", x.shape(),
          ", wanted [..., ", layer.in(), "]");
  return Var(layer(x.value().contiguous(), activation));
}

const PreparedLinear* Projection::in_use() const {
  return prepared_ && !tape_is_on() ? &*prepared_ : nullptr;
}

Var Projection::operator()(const Var& x, Activation activation) const {
  if (const PreparedLinear* prepared = in_use()) return apply(*prepared, x, activation);
  const Part all = joined(parts_());
  return linear(x, all.weight, all.bias, activation);
}

void Projection::write(const Tensor& x, float* y) const {
  if (const PreparedLinear* prepared = in_use()) return prepared->write(x, y);
  const NoGrad no_grad;
  const Tensor out = (*this)(Var(x)).value();
  std::copy_n(out.data(), out.count(), y);
}

void Projection::prepare(std::optional<Compute> wanted) {
  require(uses_ == 0 || !wanted || *wanted == compute_,
          "a model that is in use as float32 or int8 cannot be prepared as the other at the same time");
  if (uses_++ > 0) return;
  const Compute compute = wanted.value_or(Compute::float32);
  const NoGrad no_grad;
  const Part all = joined(parts_());
  try {
    prepared_.emplace(all.weight.value(), all.bias.defined() ? all.bias.value() : Tensor(), compute);
  } catch (...) {
    uses_ = 0;
    throw;
  }
  compute_ = compute;
}

void Projection::release() {
  FOVEA_ASSERT(uses_ > 0);
  if (--uses_ == 0) prepared_.reset();
}

}  // namespace fovea::nn
