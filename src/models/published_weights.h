// What the loaders of published folders share: one of our parameters may be several tensors of a file, whose rows
// stand one below the other (queries, keys and values).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "io/weight_folder.h"

namespace fovea::models {

// names: tensors that the file has. -> one tensor of this shape. Throws Error naming one of another shape.
Tensor joined_tensor(const WeightFolder& weights, std::span<const std::string> names, const Shape& shape);
// The other way: equal shares of the rows, as views to be written while `whole` lives.
void append_shares(std::vector<TensorToWrite>& tensors, std::span<const std::string> names,
                   const Tensor& whole);

}  // namespace fovea::models
