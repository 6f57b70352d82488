#include "kernels/packed_gemm.h"

#include "kernels/packed_gemm-inl.h"

namespace fovea::kernels::FOVEA_LEVEL {

extern const PackedGemmKernels packed_gemm_table;
const PackedGemmKernels packed_gemm_table{
    .panel_columns = panels::kColumns,
    .pack = panels::pack,
    .multiply = panels::multiply,
};

}  // namespace fovea::kernels::FOVEA_LEVEL
