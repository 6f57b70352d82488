fovea_test(base/parallel_test unit)
fovea_test(base/rng_test unit)
