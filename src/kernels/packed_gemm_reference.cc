#include "kernels/packed_gemm.h"

namespace fovea::kernels {
namespace {

constexpr int64_t kPanelColumns = 1;

void pack(const PackSource& source, float* packed) {
  for (int64_t j = 0; j < source.n; ++j)
    for (int64_t p = 0; p < source.k; ++p)
      packed[j * source.k + p] = source.b[source.transpose ? j * source.ldb + p : p * source.ldb + j];
}

void multiply(const PackedProduct& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = g.column_begin; j < g.column_end; ++j) {
      float& c = g.c[i * g.ldc + j];
      float sum = g.accumulate ? c : g.bias != nullptr ? g.bias[j] : 0;
      for (int64_t p = 0; p < g.k; ++p) sum += g.a[i * g.lda + p] * g.packed[j * g.k + p];
      c = sum;
    }
  }
}

}  // namespace

namespace scalar {
extern const PackedGemmKernels packed_gemm_table;
const PackedGemmKernels packed_gemm_table{.panel_columns = kPanelColumns, .pack = pack, .multiply = multiply};
}  // namespace scalar
}  // namespace fovea::kernels
