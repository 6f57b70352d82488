#include "nn/init.h"

#include <cmath>
#include <vector>

namespace fovea::nn {
namespace {

struct Fans {
  float in, out;
};

Fans fans_of(const Shape& shape) {
  require(shape.rank() >= 2, "fan of shape ", shape, ": wanted at least [out, in]");
  const auto field = static_cast<float>(shape.count(2, shape.rank()));
  return {static_cast<float>(shape[1]) * field, static_cast<float>(shape[0]) * field};
}

}  // namespace

Tensor uniform(const Shape& shape, float low, float high, Rng& rng) {
  const Tensor t(shape);
  for (float& x : t.span()) x = low + (high - low) * rng.uniform();
  return t;
}

Tensor normal(const Shape& shape, float mean, float deviation, Rng& rng) {
  const Tensor t(shape);
  for (float& x : t.span()) x = mean + deviation * rng.normal();
  return t;
}

Tensor xavier_uniform(const Shape& shape, Rng& rng, float gain) {
  const Fans fans = fans_of(shape);
  const float bound = gain * std::sqrt(6 / (fans.in + fans.out));
  return uniform(shape, -bound, bound, rng);
}

Tensor xavier_normal(const Shape& shape, Rng& rng, float gain) {
  const Fans fans = fans_of(shape);
  return normal(shape, 0, gain * std::sqrt(2 / (fans.in + fans.out)), rng);
}

Tensor kaiming_uniform(const Shape& shape, Rng& rng, float gain) {
  const float bound = gain * std::sqrt(3 / fans_of(shape).in);
  return uniform(shape, -bound, bound, rng);
}

Tensor kaiming_normal(const Shape& shape, Rng& rng, float gain) {
  return normal(shape, 0, gain / std::sqrt(fans_of(shape).in), rng);
}

Tensor orthogonal(const Shape& shape, Rng& rng, float gain) {
  require(shape.rank() == 2, "orthogonal: got shape ", shape, ", wanted a matrix");
  // Gram-Schmidt, twice for accuracy, on the vectors of the longer side, in double.
  const bool by_rows = shape[0] <= shape[1];
  const int64_t vectors = by_rows ? shape[0] : shape[1], length = by_rows ? shape[1] : shape[0];
  std::vector<double> basis(static_cast<size_t>(vectors * length));
  for (double& x : basis) x = rng.normal();
  for (int64_t i = 0; i < vectors; ++i) {
    double* v = basis.data() + i * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* u = basis.data() + j * length;
        double dot = 0;
        for (int64_t c = 0; c < length; ++c) dot += u[c] * v[c];
        for (int64_t c = 0; c < length; ++c) v[c] -= dot * u[c];
      }
    }
    double norm = 0;
    for (int64_t c = 0; c < length; ++c) norm += v[c] * v[c];
    norm = std::sqrt(norm);
    for (int64_t c = 0; c < length; ++c) v[c] /= norm;
  }
  const Tensor t(shape);
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j)
      t.data()[i * shape[1] + j] =
          gain * static_cast<float>(basis[by_rows ? i * length + j : j * length + i]);
  return t;
}

}  // namespace fovea::nn
