// Averages of weights: along the way (EMA) and of finished checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "io/safetensors.h"
#include "nn/module.h"

namespace fovea::train {

// An exponential moving average of parameters and buffers: average += (1 - decay) * (weight - average) after
// every step.
class Ema {
 public:
  // Begins as a copy of the weights.
  Ema(std::vector<nn::NamedParameter> parameters, double decay);

  void update();
  // Exchanges weights and averages: call it before validating and again after.
  void swap();

  std::vector<TensorToWrite> state() const;
  // Throws Error, leaving the averages unchanged, when a name or shape does not fit.
  void load_state(const SafetensorsView& file);

 private:
  std::vector<nn::NamedParameter> parameters_;
  std::vector<Tensor> averages_;
  double decay_;
};

// The mean of the tensors of several safetensors files, name by name, summed in double and in the order
// given. Throws Error when a file lacks a name, has another shape, or one that the first does not have.
void average_checkpoints(std::span<const std::filesystem::path> files, const std::filesystem::path& out);

}  // namespace fovea::train
