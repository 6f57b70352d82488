// The log-probability of points drawn around a predicted mean: what REINFORCE weighs by the reward of a draw.
#pragma once

#include "autograd/var.h"

namespace fovea {

// mean, drawn: [rows, d]; of each row under a normal distribution with the same deviation on every axis -> [rows].
// The gradient goes to the mean alone: a draw is a constant.
Var gaussian_log_probability(const Var& mean, const Tensor& drawn, float deviation);

}  // namespace fovea
