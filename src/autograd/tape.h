// What layers need to know of the tape besides recording.
#pragma once

#include "autograd/var.h"

namespace fovea {

// False while a NoGrad lives on this thread.
bool tape_is_on();

// As leaf.set_value(value), without a copy: the leaf keeps `value` itself, contiguous and of the same shape.
// Tensors taken from leaf.value() before stay as they were.
void take_value(const Var& leaf, Tensor value);
// Gives the memory of a leaf's value back, where nothing will read it any more.
void drop_value(const Var& leaf);

}  // namespace fovea
