// Arithmetic element by element: unary functions, broadcasting operators, dropout, the end of a linear layer.
//
// Outputs may be the inputs themselves (in place) unless a comment says otherwise; they never overlap in
// part.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "kernels/vector/dropout.h"

namespace fovea::kernels {

// gelu is x Phi(x) with the error function; gelu_tanh its approximation by tanh; silu (swish) is x sigmoid(x).
enum class Unary { relu, gelu, gelu_tanh, silu, tanh, sigmoid, exp, log };
constexpr int kUnaryCount = 8;

// What a gradient needs kept: the input x (true) or the output y (false).
constexpr bool unary_saves_input(Unary op) {
  return op == Unary::gelu || op == Unary::gelu_tanh || op == Unary::silu || op == Unary::log;
}

enum class Binary { add, sub, mul, div };
constexpr int kBinaryCount = 4;

struct ElementwiseKernels;
const ElementwiseKernels& elementwise_kernels(Level level = current_level());

void unary(Unary op, const float* x, float* y, int64_t count,
           const ElementwiseKernels& kernels = elementwise_kernels());
// dx = dy * op'(x); `saved` is x or y as unary_saves_input says.
void unary_backward(Unary op, const float* saved, const float* dy, float* dx, int64_t count,
                    const ElementwiseKernels& kernels = elementwise_kernels());

// An operand of a broadcast: strides in elements, 0 along a repeated dimension.
struct Strided {
  const float* data = nullptr;
  const int64_t* strides = nullptr;
};
// y = a op b over `sizes`; y is contiguous.
void binary(Binary op, std::span<const int64_t> sizes, Strided a, Strided b, float* y,
            const ElementwiseKernels& kernels = elementwise_kernels());

// y = alpha * x
void scale(float alpha, const float* x, float* y, int64_t count,
           const ElementwiseKernels& kernels = elementwise_kernels());
// y += alpha * x
void axpy(float alpha, const float* x, float* y, int64_t count,
          const ElementwiseKernels& kernels = elementwise_kernels());

// y = x times the factors of dropout. The same call is its own gradient.
void dropout(const Dropout& dropout, const float* x, float* y, int64_t count,
             const ElementwiseKernels& kernels = elementwise_kernels());

// What follows the product in a linear layer.
enum class Epilogue { none, relu, gelu, gelu_tanh, silu };

// x: [rows, columns]; bias: [columns] or null; y = activation(x + bias). With `before` set, x + bias is kept
// there: the gradients of gelu and silu need it.
struct BiasActivation {
  Epilogue activation = Epilogue::none;
  int64_t rows = 0, columns = 0;
  const float* x = nullptr;
  const float* bias = nullptr;
  float* before = nullptr;
  float* y = nullptr;
};
void bias_activation(const BiasActivation& args, const ElementwiseKernels& kernels = elementwise_kernels());

// dx = dy * activation'(x + bias), d_bias = sums of the columns of dx. `saved` is y for relu, unused for none,
// `before` for the others. dx may be null for none, d_bias may be null.
struct BiasActivationBackward {
  Epilogue activation = Epilogue::none;
  int64_t rows = 0, columns = 0;
  const float* saved = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;
  float* d_bias = nullptr;
};
void bias_activation_backward(const BiasActivationBackward& args,
                              const ElementwiseKernels& kernels = elementwise_kernels());

// Bodies on the calling thread, over contiguous arrays.
struct ElementwiseKernels {
  void (*unary[kUnaryCount])(const float* x, float* y, int64_t count);
  void (*unary_backward[kUnaryCount])(const float* saved, const float* dy, float* dx, int64_t count);
  using BinaryBody = void (*)(const float* a, const float* b, float* y, int64_t count);
  // [op][0]: both advance; [1]: b is one number; [2]: a is one number.
  BinaryBody binary[kBinaryCount][3];
  void (*scale)(float alpha, const float* x, float* y, int64_t count);
  void (*axpy)(float alpha, const float* x, float* y, int64_t count);
  // `first` is the number of x[0] among the elements of its tensor.
  void (*dropout)(const Dropout& dropout, int64_t first, const float* x, float* y, int64_t count);
  void (*bias_activation)(const BiasActivation& args, int64_t begin_row, int64_t end_row);
  // `bias_sums` [columns] is added to; null when not wanted.
  void (*bias_activation_backward)(const BiasActivationBackward& args, int64_t begin_row, int64_t end_row,
                                   float* bias_sums);
};

}  // namespace fovea::kernels
