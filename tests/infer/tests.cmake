fovea_test(infer/beam_test unit)
fovea_test(infer/metrics_test golden)
target_compile_definitions(test_infer_metrics_test PRIVATE FOVEA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
target_link_libraries(test_infer_metrics_test PRIVATE nlohmann_json::nlohmann_json)
