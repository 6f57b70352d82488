// A linear layer made ready for many calls with few rows: its weight packed once.
#pragma once

#include <cstdint>

#include "kernels/elementwise.h"
#include "tensor/tensor.h"

namespace fovea {

// y = activation(x weight^T + bias). A row's result does not depend on the other rows of the call.
class PackedLinear {
 public:
  PackedLinear() = default;
  // weight: [out, in], bias: [out] or undefined.
  PackedLinear(const Tensor& weight, const Tensor& bias);
  // x: [rows, in] -> [rows, out].
  Tensor operator()(const Tensor& x, kernels::Epilogue activation = kernels::Epilogue::none) const;

 private:
  int64_t in_ = 0, out_ = 0;
  Tensor packed_, bias_;
};

}  // namespace fovea
