#include "kernels/vector/topk.h"

#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(TopKKernels, top_k_table, top_k_kernels)
