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

void WeightReader::take_in_layer(const Var& place, std::span<const std::string> names) {
  take(place, names);
  if (use_ && place.rank() == 2) matrices_.insert(matrices_.end(), names.begin(), names.end());
}

std::optional<nn::Prepared> WeightReader::finish(const nn::Module& layer, const Var& kept) {
  if (!use_) return {};
  nn::Prepared packed(layer, *use_);
  for (const nn::NamedParameter& parameter : layer.parameters())
    if (parameter.value.rank() == 2 && !parameter.value.is_same(kept)) drop_value(parameter.value);
  for (const std::string& name : matrices_) weights_.release(name);
  matrices_.clear();
  return packed;
}

}  // namespace fovea::models
