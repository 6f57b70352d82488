fovea_test(kernels/vector_math_test unit per_isa)
fovea_test(kernels/optim_test per_isa)
fovea_test(kernels/peak_test per_isa)
fovea_test(kernels/packed_gemm_test unit per_isa)
