#include "kernels/packed_gemm.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(PackedGemmKernels, packed_gemm_table, packed_gemm_kernels)

namespace fovea::kernels {

int64_t packed_size(int64_t n, int64_t k, Level level) {
  const int64_t columns = packed_gemm_kernels(level).panel_columns;
  return (n + columns - 1) / columns * columns * k;
}

void pack_parallel(const PackSource& source, float* packed, Level level) {
  const PackedGemmKernels& kernels = packed_gemm_kernels(level);
  const int64_t panels = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, source.k * kernels.panel_columns));
  parallel_for(source.n, panels * kernels.panel_columns,
               [&](int64_t begin, int64_t end) { kernels.pack_columns(source, begin, end, packed); });
}

void packed_gemm(PackedProduct product) {
  const PackedGemmKernels& kernels = packed_gemm_kernels();
  // About 2^18 multiply-adds make a chunk worth handing out.
  const int64_t column_work = std::max<int64_t>(1, product.m * product.k * kernels.panel_columns);
  const int64_t panels = std::max<int64_t>(1, (int64_t{1} << 18) / column_work);
  parallel_for(product.n, panels * kernels.panel_columns, [&](int64_t begin, int64_t end) {
    PackedProduct part = product;
    part.column_begin = begin;
    part.column_end = end;
    kernels.multiply(part);
  });
}

}  // namespace fovea::kernels
