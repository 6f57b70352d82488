#include "infer/packed_linear.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/int8_gemm.h"
#include "kernels/packed_gemm.h"

namespace fovea {
namespace {

// Rows taken together: they stay in the second-level cache while all columns pass by.
constexpr int64_t kBlockRows = 48;

int64_t floats_for(int64_t bytes) {
  return (bytes + 3) / 4;
}

}  // namespace

Compute compute_named(std::string_view name) {
  if (name == "float32") return Compute::float32;
  require(name == "int8", "compute: got ", "'", name, "'", ", wanted float32 or int8");
  return Compute::int8;
}

PackedLinear::PackedLinear(const Tensor& weight, const Tensor& bias, Compute compute)
    : compute_(compute), in_(weight.size(1)), out_(weight.size(0)) {
  const Tensor rows = weight.contiguous();
  if (bias.defined()) bias_ = bias.clone();
  if (compute == Compute::float32) {
    packed_ = Tensor(Shape{kernels::packed_size(out_, in_)});
    kernels::packed_gemm_kernels().pack(
        {.transpose = true, .n = out_, .k = in_, .b = rows.data(), .ldb = in_}, packed_.data());
    return;
  }
  std::vector<int8_t> q(static_cast<size_t>(out_ * in_));
  scales_ = Tensor(Shape{out_});
  require(kernels::quantize_int8(out_, in_, rows.data(), q.data(), scales_.data()),
          "int8: a weight is not finite; the model is damaged");
  packed_ = Tensor(Shape{floats_for(kernels::packed_int8_size(out_, in_))});
  kernels::int8_kernels().pack(out_, in_, q.data(), reinterpret_cast<int8_t*>(packed_.data()));
}

void PackedLinear::multiply(int64_t rows, const float* x, float* y) const {
  kernels::packed_gemm({.m = rows,
                        .n = out_,
                        .k = in_,
                        .a = x,
                        .lda = in_,
                        .packed = packed_.data(),
                        .bias = bias_.defined() ? bias_.data() : nullptr,
                        .c = y,
                        .ldc = out_});
}

void PackedLinear::multiply_int8(int64_t rows, const float* x, float* y) const {
  const kernels::Int8Kernels& kernels = kernels::int8_kernels();
  const Tensor q(Shape{floats_for(rows * kernels::int8_depth(in_) * 2)}), scales(Shape{rows});
  auto* quantised = reinterpret_cast<int16_t*>(q.data());
  kernels.quantize_rows(rows, in_, x, quantised, scales.data());
  // About 2^18 products make a chunk worth handing out.
  const int64_t work = std::max<int64_t>(1, rows * in_ * kernels.panel_columns);
  const int64_t panels = std::max<int64_t>(1, (int64_t{1} << 18) / work);
  parallel_for(out_, panels * kernels.panel_columns, [&](int64_t begin, int64_t end) {
    kernels::int8_multiply({.m = rows,
                            .n = out_,
                            .k = in_,
                            .column_begin = begin,
                            .column_end = end,
                            .a = quantised,
                            .a_scales = scales.data(),
                            .packed = reinterpret_cast<const int8_t*>(packed_.data()),
                            .scales = scales_.data(),
                            .bias = bias_.defined() ? bias_.data() : nullptr,
                            .c = y,
                            .ldc = out_});
  });
}

Tensor PackedLinear::operator()(const Tensor& x, kernels::Epilogue activation) const {
  FOVEA_ASSERT(x.is_contiguous() && x.size(-1) == in_);
  const int64_t rows = x.size(0);
  Tensor y({rows, out_});
  parallel_for(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    const float* from = x.data() + begin * in_;
    float* to = y.data() + begin * out_;
    if (compute_ == Compute::float32)
      multiply(end - begin, from, to);
    else
      multiply_int8(end - begin, from, to);
    if (activation != kernels::Epilogue::none)
      kernels::bias_activation(
          {.activation = activation, .rows = end - begin, .columns = out_, .x = to, .y = to});
  });
  return y;
}

}  // namespace fovea
