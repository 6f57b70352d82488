// How parameters begin. All draw from the given generator, one element after the other; where values are to
// be read from a file, nothing is drawn (ParametersFromFile).
#pragma once

#include <string>

#include "base/rng.h"
#include "tensor/tensor.h"

namespace fovea::nn {

// While one lives on this thread, the functions below give memory that is not written, for parameters whose
// values come from a file, and throw Error before they take memory for more than `most` elements in all: a
// config cannot ask for more than the file holds.
class ParametersFromFile {
 public:
  // `where` begins the message: the file's name.
  ParametersFromFile(int64_t most, std::string where);
  ~ParametersFromFile();
  ParametersFromFile(const ParametersFromFile&) = delete;
  ParametersFromFile& operator=(const ParametersFromFile&) = delete;

 private:
  friend Tensor parameter_memory(const Shape& shape);
  int64_t most_, left_;
  std::string where_;
  ParametersFromFile* before_;
};

// False while a ParametersFromFile lives on this thread.
bool parameters_are_drawn();

Tensor constant(const Shape& shape, float value);
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
