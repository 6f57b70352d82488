fovea_test(nn/module_test unit)
fovea_test(nn/transformer_test golden)
target_compile_definitions(test_nn_transformer_test PRIVATE FOVEA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
