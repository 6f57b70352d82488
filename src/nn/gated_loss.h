// A loss that counts only where a mask lets it: one task decides where another is trained.
//
// Two tasks of one network, such as "where is it" and "which of two is it", disturb each other: the second has
// nothing to learn where the first finds nothing. With the first task's answer as a mask, no gradient of the
// second flows outside of it (task partitioning, Lin, Shi and Zou 2017).
#pragma once

#include "autograd/var.h"

namespace fovea::nn {

// loss: one number for each place, any shape (Reduction::none). mask: as many weights of 0 or more, constant:
// nothing flows into them -> the mean of the loss weighted by the mask, a scalar; 0 where the mask is 0
// everywhere. Where the mask is 0 the gradient is exactly 0, and the loss may be NaN or Inf. Throws Error when
// counts differ or a weight is negative or not finite.
Var gated_loss(const Var& loss, const Tensor& mask);

}  // namespace fovea::nn
