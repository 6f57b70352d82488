// One finite-difference checker for every op and layer.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autograd/var.h"
#include "base/rng.h"

namespace fovea::testing {

// Normal numbers, none within `gap` of 0 (where relu and its like have a corner).
inline Tensor random_tensor(const Shape& shape, uint64_t seed, float gap = 0) {
  Tensor t(shape);
  Rng rng(seed);
  for (float& x : t.span()) {
    x = rng.normal();
    x += std::copysign(gap, x);
  }
  return t;
}

using Function = std::function<Var(std::span<const Var> inputs)>;

struct GradientCheck {
  float step = 0.02f;
  double tolerance = 2e-3;  // relative to 1 + |gradient|
};

// Compares the gradient of a random weighting of f's result with differences of 4th order, for every input
// element.
inline void check_gradients(const Function& f, const std::vector<Tensor>& inputs,
                            GradientCheck options = {}) {
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) leaves.emplace_back(input.clone(), true);
  const Var result = f(leaves);
  const Tensor weights = random_tensor(result.shape(), 77);
  if (result.requires_grad()) result.backward(weights);
  const auto value = [&] {
    const NoGrad no_grad;
    const Tensor y = f(leaves).value().contiguous();
    double sum = 0;
    for (int64_t i = 0; i < y.count(); ++i) sum += static_cast<double>(y.data()[i]) * weights.data()[i];
    return sum;
  };
  for (size_t k = 0; k < leaves.size(); ++k) {
    const Tensor grad = leaves[k].grad().defined() ? leaves[k].grad() : Tensor::zeros(leaves[k].shape());
    ASSERT_EQ(grad.shape(), leaves[k].shape()) << "input " << k;
    for (int64_t i = 0; i < grad.count(); ++i) {
      float& x = leaves[k].value().data()[i];
      const float x0 = x;
      const auto slope = [&](float step) {
        x = x0 + step;
        const float up = x;
        const double above = value();
        x = x0 - step;
        const double below = value(), width = static_cast<double>(up) - x;
        x = x0;
        return (above - below) / width;
      };
      const double wanted = (4 * slope(options.step / 2) - slope(options.step)) / 3;
      ASSERT_NEAR(grad.data()[i], wanted, options.tolerance * (1 + std::fabs(wanted)))
          << "input " << k << " of shape " << leaves[k].shape() << ", element " << i;
    }
  }
}

}  // namespace fovea::testing
