// A linear layer made ready for use: its weight rearranged once for the kernels, as float32 or int8.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/parallel.h"
#include "kernels/vector/elementwise.h"
#include "tensor/tensor.h"

namespace fovea {

// What the products of a model in use are made of.
enum class Compute {
  float32,
  int8,  // weights of eight bits, one scale a row (kernels/gemm/int8_gemm.h)
};
// "float32" or "int8"; throws Error for anything else.
Compute compute_named(std::string_view name);

namespace nn {

// y = activation(x weight^T + bias). A row's result does not depend on the other rows of the call.
class PreparedLinear {
 public:
  PreparedLinear() = default;
  // weight: [out, in], bias: [out] or undefined.
  PreparedLinear(const Tensor& weight, const Tensor& bias, Compute compute = Compute::float32);
  // x: [rows, in] -> [rows, out].
  Tensor operator()(const Tensor& x, kernels::Epilogue activation = kernels::Epilogue::none) const;
  // The same without activation, into memory for rows * out floats.
  void write(const Tensor& x, float* y) const;
  // The same by parts whose columns begin at multiples of `unit`; after(row, row_end, column, column_end) is
  // called on the thread that has just computed such a part, while it is in the cache.
  void run(const Tensor& x, float* y, int64_t unit,
           FunctionRef<void(int64_t, int64_t, int64_t, int64_t)> after) const;
  int64_t in() const { return in_; }
  int64_t out() const { return out_; }

 private:
  struct Block;
  void multiply(const Block& block) const;

  Compute compute_ = Compute::float32;
  int64_t in_ = 0, out_ = 0;
  Tensor packed_, scales_, bias_;  // packed_ holds bytes when compute_ is int8
};

}  // namespace nn
}  // namespace fovea
