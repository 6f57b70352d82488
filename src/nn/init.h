// How parameters begin. All draw from the given generator, one element after the other.
#pragma once

#include "base/rng.h"
#include "tensor/tensor.h"

namespace fovea::nn {

Tensor uniform(const Shape& shape, float low, float high, Rng& rng);
Tensor normal(const Shape& shape, float mean, float deviation, Rng& rng);
// Glorot and Bengio: variance 2 / (fan_in + fan_out). For [out, in, ...], fans count the trailing sizes too.
Tensor xavier_uniform(const Shape& shape, Rng& rng, float gain = 1);
Tensor xavier_normal(const Shape& shape, Rng& rng, float gain = 1);
// He et al.: variance gain^2 / fan_in; the default gain is right before a ReLU.
Tensor kaiming_uniform(const Shape& shape, Rng& rng, float gain = 1.41421356f);
Tensor kaiming_normal(const Shape& shape, Rng& rng, float gain = 1.41421356f);
// A [rows, columns] matrix with orthonormal rows (or columns, when there are more rows), times gain.
Tensor orthogonal(const Shape& shape, Rng& rng, float gain = 1);

}  // namespace fovea::nn
