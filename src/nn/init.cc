#include "nn/init.h"

#include <cmath>
#include <utility>
#include <vector>

namespace fovea::nn {
namespace {

thread_local ParametersFromFile* t_from_file = nullptr;

struct Fans {
  float in, out;
};

Fans fans_of(const Shape& shape) {
  require(shape.rank() >= 2, "fan of shape ", shape, ": wanted at least [out, in]");
  const auto field = static_cast<float>(shape.count(2, shape.rank()));
  return {static_cast<float>(shape[1]) * field, static_cast<float>(shape[0]) * field};
}

}  // namespace

ParametersFromFile::ParametersFromFile(int64_t most, std::string where)
    : most_(most), left_(most), where_(std::move(where)), before_(std::exchange(t_from_file, this)) {}

ParametersFromFile::~ParametersFromFile() {
  t_from_file = before_;
}

Tensor parameter_memory(const Shape& shape) {
  if (ParametersFromFile* const file = t_from_file) {
    require(shape.count() <= file->left_, file->where_, ": contains ", file->most_,
            " numbers, but config.json describes a larger network; the two do not belong together");
    file->left_ -= shape.count();
  }
  return Tensor(shape);
}

bool parameters_are_drawn() {
  return t_from_file == nullptr;
}

Tensor constant(const Shape& shape, float value) {
  const Tensor t = parameter_memory(shape);
  if (t_from_file == nullptr) t.fill(value);
  return t;
}

Tensor uniform(const Shape& shape, float low, float high, Rng& rng) {
  const Tensor t = parameter_memory(shape);
  if (t_from_file != nullptr) return t;
  for (float& x : t.span()) x = low + (high - low) * rng.uniform();
  return t;
}

Tensor normal(const Shape& shape, float mean, float deviation, Rng& rng) {
  const Tensor t = parameter_memory(shape);
  if (t_from_file != nullptr) return t;
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
  const Tensor t = parameter_memory(shape);
  if (t_from_file != nullptr) return t;
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
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j)
      t.data()[i * shape[1] + j] =
          gain * static_cast<float>(basis[by_rows ? i * length + j : j * length + i]);
  return t;
}

}  // namespace fovea::nn
