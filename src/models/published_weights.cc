#include "models/published_weights.h"

#include "autograd/tape.h"
#include "io/json.h"

namespace fovea::models {

Tensor joined_tensor(const WeightFolder& weights, std::span<const std::string> names, const Shape& shape) {
  const auto parts = static_cast<int64_t>(names.size());
  Tensor whole = parts > 1 ? Tensor(shape) : Tensor();
  Shape wanted = shape;
  wanted.set(0, shape[0] / parts);
  for (int64_t i = 0; i < parts; ++i) {
    const std::string& name = names[static_cast<size_t>(i)];
    const Shape& got = weights.entry(name).shape;
    require(got == wanted, weights.where(), ": ", in_quotes(name), " has shape ", got, ", wanted ", wanted);
    if (parts == 1) return weights.tensor(name);
    whole.narrow(0, i * wanted[0], wanted[0]).copy_from(weights.tensor(name));
  }
  return whole;
}

void append_shares(std::vector<TensorToWrite>& tensors, std::span<const std::string> names,
                   const Tensor& whole) {
  const int64_t rows = whole.size(0) / static_cast<int64_t>(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    tensors.push_back(TensorToWrite::floats(names[i], whole.narrow(0, static_cast<int64_t>(i) * rows, rows)));
}

void WeightReader::take(const Var& place, std::span<const std::string> names) const {
  take_value(place, joined_tensor(weights_, names, place.shape()));
}

std::optional<nn::Prepared> WeightReader::finish(const nn::Module& layer) const {
  if (!use_) return {};
  return nn::Prepared(layer, *use_, [](const nn::Module&) {});
}

}  // namespace fovea::models
