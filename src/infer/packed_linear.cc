#include "infer/packed_linear.h"

#include "kernels/packed_gemm.h"

namespace fovea {

PackedLinear::PackedLinear(const Tensor& weight, const Tensor& bias)
    : in_(weight.size(1)), out_(weight.size(0)), packed_(Shape{kernels::packed_size(out_, in_)}) {
  const Tensor rows = weight.contiguous();
  kernels::packed_gemm_kernels().pack({.transpose = true, .n = out_, .k = in_, .b = rows.data(), .ldb = in_},
                                      packed_.data());
  if (bias.defined()) bias_ = bias.clone();
}

Tensor PackedLinear::operator()(const Tensor& x, kernels::Epilogue activation) const {
  FOVEA_ASSERT(x.is_contiguous() && x.size(-1) == in_);
  const int64_t rows = x.size(0);
  Tensor y({rows, out_});
  kernels::packed_gemm({.m = rows,
                        .n = out_,
                        .k = in_,
                        .a = x.data(),
                        .lda = in_,
                        .packed = packed_.data(),
                        .bias = bias_.defined() ? bias_.data() : nullptr,
                        .c = y.data(),
                        .ldc = out_});
  if (activation != kernels::Epilogue::none)
    kernels::bias_activation(
        {.activation = activation, .rows = rows, .columns = out_, .x = y.data(), .y = y.data()});
  return y;
}

}  // namespace fovea
