// A linear layer made ready for many calls with few rows: its weight packed once.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/parallel.h"
#include "infer/logits.h"
#include "kernels/elementwise.h"
#include "tensor/tensor.h"

namespace fovea {

// What the products of a translator are made of.
enum class Compute {
  float32,
  int8,  // weights of eight bits, one scale a row (kernels/int8_gemm.h)
};
// "float32" or "int8"; throws Error for anything else.
Compute compute_named(std::string_view name);

// y = activation(x weight^T + bias). A row's result does not depend on the other rows of the call.
class PackedLinear {
 public:
  PackedLinear() = default;
  // weight: [out, in], bias: [out] or undefined.
  PackedLinear(const Tensor& weight, const Tensor& bias, Compute compute = Compute::float32);
  // x: [rows, in] -> [rows, out].
  Tensor operator()(const Tensor& x, kernels::Epilogue activation = kernels::Epilogue::none) const;
  // The same without activation, into memory for rows * out floats.
  void write(const Tensor& x, float* y) const;
  // The same without activation, summarised for a choice: for an output layer.
  Logits logits(const Tensor& x) const;

 private:
  struct Block;
  void multiply(const Block& block) const;
  // y = x weight^T + bias by parts whose columns begin at multiples of `unit`; after(row, row_end, column,
  // column_end) is called on the thread that has just made such a part.
  void run(const Tensor& x, float* y, int64_t unit,
           FunctionRef<void(int64_t, int64_t, int64_t, int64_t)> after) const;

  Compute compute_ = Compute::float32;
  int64_t in_ = 0, out_ = 0;
  Tensor packed_, scales_, bias_;  // packed_ holds bytes when compute_ is int8
};

}  // namespace fovea
