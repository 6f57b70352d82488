fovea_test(kernels/vector_math_test unit per_isa)
