#pragma once

#include "base/rng.h"
#include "tensor/tensor.h"

namespace fovea {

// Independent normal numbers.
inline Tensor normal(Shape shape, uint64_t seed) {
  Rng rng(seed);
  Tensor t(shape);
  for (int64_t i = 0; i < t.count(); ++i) t.data()[i] = rng.normal();
  return t;
}

}  // namespace fovea
