// What the loaders of published folders share: one of our parameters may be several tensors of a file, whose rows
// stand one below the other (queries, keys and values), and a folder opened for use holds its weights once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "io/weight_folder.h"
#include "nn/module.h"

namespace fovea::models {

// names: tensors that the file has. -> one tensor of this shape. Throws Error naming one of another shape.
Tensor joined_tensor(const WeightFolder& weights, std::span<const std::string> names, const Shape& shape);
// The other way: equal shares of the rows, as views to be written while `whole` lives.
void append_shares(std::vector<TensorToWrite>& tensors, std::span<const std::string> names,
                   const Tensor& whole);

// Takes parameters from a folder. Where it is opened for use, each layer is prepared as soon as it is read and its matrices
// are dropped, so that memory never holds more than one layer twice.
class WeightReader {
 public:
  // use: the products to prepare for; empty: nothing is prepared, for a network that is trained or saved.
  WeightReader(const WeightFolder& weights, std::optional<Compute> use) : weights_(weights), use_(use) {}

  // Takes a parameter. names: its tensors in the file. Throws Error naming one of another shape.
  void take(const Var& place, std::span<const std::string> names) const;
  // All parameters of the layer were taken. Returns what keeps it prepared, where it is opened for use
  // (Module::prepare_for_use()).
  std::optional<nn::Prepared> finish(const nn::Module& layer) const;

 private:
  const WeightFolder& weights_;
  std::optional<Compute> use_;
};

}  // namespace fovea::models
