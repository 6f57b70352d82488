#include "kernels/packed_gemm.h"

#include "kernels/packed_gemm-inl.h"

namespace fovea::kernels::FOVEA_LEVEL {

extern const PackedGemmKernels packed_gemm_table;
const PackedGemmKernels packed_gemm_table{
    .panel_columns = panels::kColumns,
    .pack = panels::pack,
    .pack_columns = panels::pack_columns,
    .multiply = panels::multiply,
    .multiply_block = panels::multiply_block,
};

}  // namespace fovea::kernels::FOVEA_LEVEL
