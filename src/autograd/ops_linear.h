// Matrix products with gradients.
#pragma once

#include "autograd/var.h"
#include "kernels/vector/elementwise.h"

namespace fovea {

struct MatmulOptions {
  bool transpose_a = false;  // a is [..., k, m]
  bool transpose_b = false;  // b is [..., n, k]
  float scale = 1;           // the product is multiplied by this
};

// a: [..., m, k], b: [..., k, n] -> [..., m, n]. Leading dimensions agree, or one side has none and is
// shared.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {});

using Activation = kernels::Epilogue;

// x: [..., in], weight: [out, in], bias: [out] or undefined -> activation(x weight^T + bias): [..., out].
Var linear(const Var& x, const Var& weight, const Var& bias = {}, Activation activation = Activation::none);

}  // namespace fovea
