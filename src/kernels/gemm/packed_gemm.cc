#include "kernels/gemm/packed_gemm.h"

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

}  // namespace fovea::kernels
