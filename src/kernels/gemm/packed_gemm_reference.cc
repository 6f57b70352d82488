#include "kernels/gemm/packed_gemm.h"

namespace fovea::kernels {
namespace {

constexpr int64_t kPanelColumns = 1;

void pack_columns(const PackSource& source, int64_t begin, int64_t end, float* packed) {
  for (int64_t j = begin; j < end; ++j)
    for (int64_t p = 0; p < source.k; ++p)
      packed[j * source.k + p] = source.b[source.transpose ? j * source.ldb + p : p * source.ldb + j];
}

void pack(const PackSource& source, float* packed) {
  pack_columns(source, 0, source.n, packed);
}

float b_of(const PackedProduct& g, int64_t p, int64_t j) {
  return g.packed[g.ldb != 0 ? p * g.ldb + j : j * g.k + p];
}

void multiply(const PackedProduct& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = g.column_begin; j < g.column_end; ++j) {
      float& c = g.c[i * g.ldc + j];
      float sum = g.accumulate ? c : g.bias != nullptr ? g.bias[j] : 0;
      for (int64_t p = 0; p < g.k; ++p) sum += g.a[i * g.lda + p] * b_of(g, p, j);
      c = sum;
    }
  }
}

void multiply_block(const BlockProduct& block) {
  const PackedProduct& g = block.product;
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = g.column_begin; j < g.column_end; ++j) {
      float& c = g.c[i * g.ldc + j];
      float sum = g.accumulate ? c : g.bias != nullptr ? g.bias[j] : 0;
      for (int64_t p = 0; p < g.k; ++p)
        sum += block.alpha * g.a[block.transpose_a ? p * g.lda + i : i * g.lda + p] * b_of(g, p, j);
      c = sum;
    }
  }
}

void elements(const RowElements& e) {
  for (int64_t i = 0; i < e.count; ++i) {
    const int64_t j = e.columns[i];
    float sum = e.bias != nullptr ? e.bias[j] : 0;
    for (int64_t p = 0; p < e.k; ++p) sum += e.a[p] * e.b[j * e.k + p];
    e.c[i] = sum;
  }
}

}  // namespace

namespace scalar {
extern const PackedGemmKernels packed_gemm_table;
const PackedGemmKernels packed_gemm_table{
    .panel_columns = kPanelColumns,
    .depth = 256,
    .pack = pack,
    .pack_columns = pack_columns,
    .multiply = multiply,
    .multiply_block = multiply_block,
    .elements = elements,
};
}  // namespace scalar
}  // namespace fovea::kernels
