fovea_test(autograd/var_test unit)
fovea_test(autograd/ops_grad_test grad)
fovea_test(autograd/ops_golden_test golden)
target_compile_definitions(test_autograd_ops_golden_test PRIVATE FOVEA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
