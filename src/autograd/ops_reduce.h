// Sums, means and maxima.
#pragma once

#include "autograd/var.h"

namespace fovea {

// Of all elements: a scalar.
Var sum(const Var& x);
Var mean(const Var& x);

// Along one axis, which is dropped, or kept with size 1.
Var sum(const Var& x, int axis, bool keep_axis = false);
Var mean(const Var& x, int axis, bool keep_axis = false);
// The gradient goes to the first of equal maxima. The axis must not be empty.
Var max(const Var& x, int axis, bool keep_axis = false);

}  // namespace fovea
