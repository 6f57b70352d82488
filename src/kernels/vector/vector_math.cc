#include "kernels/vector/vector_math.h"

#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(VectorMathKernels, vector_math_table, vector_math_kernels)
