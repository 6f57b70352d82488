// Weights packed for use, in float32 or int8, and products with them.
#include "nn/prepared_linear.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/gemm/int8_gemm.h"
#include "kernels/gemm/packed_gemm.h"

namespace fovea {
namespace {

// Rows taken together: they stay in the second-level cache while all columns pass by.
int64_t block_rows(int64_t in) {
  return std::clamp<int64_t>((int64_t{1} << 16) / std::max<int64_t>(1, in), 64, 128);
}
constexpr int64_t kParts = 8;

int64_t floats_for(int64_t bytes) {
  return (bytes + 3) / 4;
}

}  // namespace

Compute compute_named(std::string_view name) {
  if (name == "float32") return Compute::float32;
  require(name == "int8", "compute: got ", "'", name, "'", ", wanted float32 or int8");
  return Compute::int8;
}

namespace nn {

PreparedLinear::PreparedLinear(const Tensor& weight, const Tensor& bias, Compute compute)
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
  const kernels::Int8Kernels& kernels = kernels::int8_kernels();
  packed_ = Tensor(Shape{floats_for(kernels::packed_int8_size(out_, in_, kernels))});
  kernels.pack(out_, in_, q.data(), reinterpret_cast<int8_t*>(packed_.data()));
}

// Rows and columns of one call that are computed together.
struct PreparedLinear::Block {
  int64_t rows, column_begin, column_end;
  const float* x;        // float32: the rows
  const int32_t* q;      // int8: the rows, quantised,
  const float* scales;   // their scales,
  const int32_t* zeros;  // and the number that represents 0 in them
  float* y;
};

void PreparedLinear::multiply(const Block& block) const {
  const float* bias = bias_.defined() ? bias_.data() : nullptr;
  if (compute_ == Compute::float32) {
    kernels::packed_gemm_kernels().multiply({.m = block.rows,
                                             .n = out_,
                                             .k = in_,
                                             .column_begin = block.column_begin,
                                             .column_end = block.column_end,
                                             .a = block.x,
                                             .lda = in_,
                                             .packed = packed_.data(),
                                             .bias = bias,
                                             .c = block.y,
                                             .ldc = out_});
  } else {
    kernels::int8_kernels().multiply({.m = block.rows,
                                      .n = out_,
                                      .k = in_,
                                      .column_begin = block.column_begin,
                                      .column_end = block.column_end,
                                      .a = block.q,
                                      .a_scales = block.scales,
                                      .a_zeros = block.zeros,
                                      .packed = reinterpret_cast<const int8_t*>(packed_.data()),
                                      .scales = scales_.data(),
                                      .bias = bias,
                                      .c = block.y,
                                      .ldc = out_});
  }
}

void PreparedLinear::run(const Tensor& x, float* y, int64_t unit,
                         FunctionRef<void(int64_t, int64_t, int64_t, int64_t)> after) const {
  FOVEA_ASSERT(x.is_contiguous());
  require(x.rank() >= 1 && x.size(-1) == in_, "linear layer: got input of shape ", x.shape(), ", wanted ",
          in_, " features in its last axis");
  const int64_t rows = x.shape().count(0, x.rank() - 1);
  const bool int8 = compute_ == Compute::int8;
  const kernels::Int8Kernels& kernels = kernels::int8_kernels();
  const int64_t groups = kernels.groups(in_);
  Tensor quantised;  // int8 alone: the rows, their zeros, their scales
  int32_t *q = nullptr, *zeros = nullptr;
  float* scales = nullptr;
  if (int8) {
    quantised = Tensor(Shape{rows * (groups + 2)});
    q = reinterpret_cast<int32_t*>(quantised.data());
    zeros = q + rows * groups;
    scales = quantised.data() + rows * (groups + 1);
    parallel_for(rows, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, in_)),
                 [&](int64_t begin, int64_t end) {
                   kernels.quantize_rows(end - begin, in_, x.data() + begin * in_, q + begin * groups,
                                         scales + begin, zeros + begin);
                 });
  }
  // A part has 2^18 products at least, and there are no more parts of a block of rows than kParts.
  unit = std::max(unit, int8 ? kernels.panel_columns : kernels::packed_gemm_kernels().panel_columns);
  const int64_t unit_work = std::max<int64_t>(1, std::min(rows, block_rows(in_)) * in_ * unit);
  const int64_t units = (out_ + unit - 1) / unit;
  const int64_t part = unit * std::max((int64_t{1} << 18) / unit_work + 1, (units + kParts - 1) / kParts);
  const int64_t parts = (out_ + part - 1) / part, blocks = (rows + block_rows(in_) - 1) / block_rows(in_);
  parallel_chunks(blocks * parts, [&](int64_t chunk) {
    const int64_t begin = chunk / parts * rows / blocks, end = (chunk / parts + 1) * rows / blocks;
    const int64_t column = chunk % parts * part, column_end = std::min(column + part, out_);
    multiply({.rows = end - begin,
              .column_begin = column,
              .column_end = column_end,
              .x = x.data() + begin * in_,
              .q = int8 ? q + begin * groups : nullptr,
              .scales = int8 ? scales + begin : nullptr,
              .zeros = int8 ? zeros + begin : nullptr,
              .y = y + begin * out_});
    after(begin, end, column, column_end);
  });
}

Tensor PreparedLinear::operator()(const Tensor& x, kernels::Epilogue activation) const {
  Shape shape = x.shape();
  shape.set(-1, out_);
  Tensor y(shape);
  run(x, y.data(), 1, [&](int64_t begin, int64_t end, int64_t column, int64_t column_end) {
    if (activation == kernels::Epilogue::none) return;
    for (int64_t row = begin; row < end; ++row) {
      float* piece = y.data() + row * out_ + column;
      kernels::bias_activation(
          {.activation = activation, .rows = 1, .columns = column_end - column, .x = piece, .y = piece});
    }
  });
  return y;
}

void PreparedLinear::write(const Tensor& x, float* y) const {
  run(x, y, 1, [](int64_t, int64_t, int64_t, int64_t) {});
}

}  // namespace nn
}  // namespace fovea
