// Dropout, layer norm and their fusion with a residual sum, each with its gradient.
#include "autograd/ops_norm.h"

#include <algorithm>
#include <cmath>

#include "autograd/in_place.h"
#include "autograd/optional.h"
#include "autograd/tape.h"
#include "base/parallel.h"
#include "kernels/norm/norm.h"
#include "kernels/vector/elementwise.h"

namespace fovea {
namespace {

struct NormSizes {
  int64_t rows, columns;
};

NormSizes check(const Var& x, const Var& weight, const Var& bias) {
  require(x.rank() >= 1, "layer_norm: got a single number, wanted [..., d]");
  const int64_t d = x.size(-1);
  for (const Var* parameter : {&weight, &bias}) {
    if (parameter->defined() && (parameter->rank() != 1 || parameter->size(0) != d))
      fail("layer_norm: got a weight or bias of shape ", parameter->shape(), " for input ", x.shape(),
           ", wanted [", d, "]");
  }
  return {x.shape().count(0, x.rank() - 1), d};
}

// Statistics of the forward pass and what was normalised.
struct Saved {
  Tensor sum, mean, rstd;
};

// Adds the gradients of everything that met in the norm: x is null where there was no dropout and residual.
struct NormParents {
  Var x, residual, weight, bias;
};

void run_backward(const NormParents& parents, const Saved& saved, const kernels::Dropout& dropout,
                  const Tensor& dy, const Tensor& d_sum) {
  const auto& [x, residual, weight, bias] = parents;
  const Tensor d_residual(saved.sum.shape());
  const Tensor d_x = x.requires_grad() && dropout.active() ? Tensor(saved.sum.shape()) : Tensor();
  const Tensor d_weight = weight.requires_grad() ? Tensor(weight.shape()) : Tensor();
  const Tensor d_bias = bias.requires_grad() ? Tensor(bias.shape()) : Tensor();
  const auto pointer = [](const Tensor& t) { return t.defined() ? t.data() : nullptr; };
  kernels::norm_backward({.rows = saved.mean.count(),
                          .columns = saved.sum.size(-1),
                          .dy = dy.data(),
                          .d_sum = pointer(d_sum),
                          .sum = saved.sum.data(),
                          .mean = saved.mean.data(),
                          .rstd = saved.rstd.data(),
                          .weight = data_or_null(weight),
                          .dropout = dropout,
                          .d_residual = d_residual.data(),
                          .d_x = pointer(d_x),
                          .d_weight = pointer(d_weight),
                          .d_bias = pointer(d_bias)});
  if (weight.requires_grad()) weight.add_grad(d_weight);
  if (bias.requires_grad()) bias.add_grad(d_bias);
  if (x.requires_grad()) x.add_grad(d_x.defined() ? d_x : d_residual);
  if (residual.requires_grad()) residual.add_grad(d_residual);
}

}  // namespace

Var dropout(const Var& x, float p, uint64_t seed) {
  require(p >= 0 && p < 1, "dropout: got p = ", p, ", wanted 0 or more and less than 1");
  if (p == 0) return x;
  const kernels::Dropout draws{.probability = p, .seed = seed};
  const Tensor from = x.value().contiguous();
  Tensor y(x.shape());
  kernels::dropout(draws, from.data(), y.data(), y.count());
  return record(std::move(y), {x}, [x, draws](const Tensor& grad) {
    Tensor dx(x.shape());
    kernels::dropout(draws, grad.data(), dx.data(), dx.count());
    x.add_grad(dx);
  });
}

Var layer_norm(const Var& x, const Var& weight, const Var& bias, float epsilon) {
  const NormSizes sizes = check(x, weight, bias);
  const bool keep = recording({x, weight, bias});
  Saved saved{x.value().contiguous(), {}, {}};
  if (keep) {
    saved.mean = Tensor(Shape{sizes.rows});
    saved.rstd = Tensor(Shape{sizes.rows});
  }
  Tensor y(x.shape());
  kernels::norm_forward({.rows = sizes.rows,
                         .columns = sizes.columns,
                         .x = saved.sum.data(),
                         .weight = data_or_null(weight),
                         .bias = data_or_null(bias),
                         .epsilon = epsilon,
                         .y = y.data(),
                         .mean = keep ? saved.mean.data() : nullptr,
                         .rstd = keep ? saved.rstd.data() : nullptr});
  if (!keep) return Var(std::move(y));
  return record(std::move(y), {x, weight, bias}, [x, weight, bias, saved](const Tensor& grad) {
    run_backward({{}, x, weight, bias}, saved, {}, grad, {});
  });
}

namespace {

// What becomes of x and of the sum.
struct NormMemory {
  bool over_x = false;    // the sum is written over x
  bool wants_sum = true;  // false: without the tape there is no sum, and over_x is of the norm
};

// The inputs of the call, not copied: a step of a decoder without the tape has little other work.
struct NormInputs {
  const Var &x, &residual, &weight, &bias;
};

NormedSum add_and_norm(const NormInputs& inputs, float p, uint64_t seed, float epsilon,
                       const NormMemory& memory) {
  const auto& [x, residual, weight, bias] = inputs;
  // Where somebody else holds the memory, such as a gradient that reads it, it stays as it is.
  const bool over_x = memory.over_x && x.value().is_sole_owner();
  require(p >= 0 && p < 1, "dropout: got p = ", p, ", wanted 0 or more and less than 1");
  require(x.shape() == residual.shape(), "residual_dropout_norm: got ", x.shape(), " and a residual of ",
          residual.shape(), ", wanted the same shape");
  const NormSizes sizes = check(x, weight, bias);
  const kernels::Dropout draws{.probability = p, .seed = seed};
  const Tensor from = x.value().contiguous(), base = residual.value().contiguous();
  const bool keep = tape_is_on() && (x.requires_grad() || residual.requires_grad() ||
                                     weight.requires_grad() || bias.requires_grad());
  const bool with_sum = keep || memory.wants_sum;
  Saved saved;
  if (with_sum) saved.sum = over_x ? from : Tensor(x.shape());
  if (keep) {
    saved.mean = Tensor(Shape{sizes.rows});
    saved.rstd = Tensor(Shape{sizes.rows});
  }
  Tensor y = over_x && !with_sum ? from : Tensor(x.shape());
  kernels::norm_forward({.rows = sizes.rows,
                         .columns = sizes.columns,
                         .x = from.data(),
                         .residual = base.data(),
                         .dropout = draws,
                         .weight = data_or_null(weight),
                         .bias = data_or_null(bias),
                         .epsilon = epsilon,
                         .sum = with_sum ? saved.sum.data() : nullptr,
                         .y = y.data(),
                         .mean = keep ? saved.mean.data() : nullptr,
                         .rstd = keep ? saved.rstd.data() : nullptr});
  if (!keep) return {Var(y), with_sum ? Var(saved.sum) : Var()};
  const NormParents parents{x, residual, weight, bias};
  const Var all[] = {x, residual, weight, bias};
  std::vector<Var> results =
      record_many({y, saved.sum}, all, [parents, saved, draws](std::span<const Tensor> grads) {
        if (grads[0].defined()) {
          run_backward(parents, saved, draws, grads[0], grads[1]);
          return;
        }
        parents.residual.add_grad(grads[1]);
        if (!parents.x.requires_grad()) return;
        const Tensor dx(saved.sum.shape());
        kernels::dropout(draws, grads[1].data(), dx.data(), dx.count());
        parents.x.add_grad(dx);
      });
  return {results[0], results[1]};
}

}  // namespace

NormedSum residual_dropout_norm(const Var& x, const Var& residual, const Var& weight, const Var& bias,
                                float p, uint64_t seed, float epsilon) {
  return add_and_norm({x, residual, weight, bias}, p, seed, epsilon, {});
}

NormedSum residual_dropout_norm_in_place(const Var& x, const Var& residual, const Var& weight,
                                         const Var& bias, float p, uint64_t seed, float epsilon) {
  return add_and_norm({x, residual, weight, bias}, p, seed, epsilon, {.over_x = true});
}

Var residual_dropout_norm_alone(const Var& x, const Var& residual, const Var& weight, const Var& bias,
                                float p, uint64_t seed, float epsilon) {
  return add_and_norm({x, residual, weight, bias}, p, seed, epsilon, {.over_x = true, .wants_sum = false})
      .normed;
}

Var unit_rows(const Var& x) {
  const Tensor from = x.value().contiguous();
  const int64_t d = std::max<int64_t>(1, x.size(-1)), rows = from.count() / d;
  const Tensor unit(x.shape());
  const Tensor inverse(Shape{rows});
  const auto each_row = [rows, d](auto body) {
    parallel_for(rows, std::max<int64_t>(1, 16384 / d), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  };
  each_row([&](int64_t i) {
    double squares = 0;
    for (int64_t c = 0; c < d; ++c) squares += double{from.data()[i * d + c]} * from.data()[i * d + c];
    const auto scale = squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0.0f;
    inverse.data()[i] = scale;
    for (int64_t c = 0; c < d; ++c) unit.data()[i * d + c] = from.data()[i * d + c] * scale;
  });
  return record(unit, {x}, [=](const Tensor& grad) {
    const Tensor dx(x.shape());
    each_row([&](int64_t i) {
      const float *u = unit.data() + i * d, *g = grad.data() + i * d;
      double along = 0;
      bool touched = false;
      for (int64_t c = 0; c < d; ++c) {
        along += double{u[c]} * g[c];
        touched |= g[c] != 0;
      }
      if (!touched) {  // a masked key, whose own NaN must not turn into a gradient
        std::fill_n(dx.data() + i * d, d, 0.0f);
        return;
      }
      for (int64_t c = 0; c < d; ++c)
        dx.data()[i * d + c] = (g[c] - static_cast<float>(along) * u[c]) * inverse.data()[i];
    });
    x.add_grad(dx);
  });
}

}  // namespace fovea
