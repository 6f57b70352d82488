fovea_test(infer/beam_test unit)
fovea_test(infer/decode_all_test unit)
fovea_test(infer/metrics_test golden)
target_compile_definitions(test_infer_metrics_test PRIVATE FOVEA_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
target_link_libraries(test_infer_metrics_test PRIVATE nlohmann_json::nlohmann_json)
fovea_test(infer/transformer_decoder_test unit)
fovea_test(infer/recurrent_decoder_test unit)
target_link_libraries(test_infer_recurrent_decoder_test PRIVATE nlohmann_json::nlohmann_json)
fovea_test(infer/packed_linear_test unit)
fovea_test(infer/output_layer_test unit)

# What these promise holds for any number of lanes.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  foreach(name transformer_decoder recurrent_decoder decode_all output_layer)
    add_test(NAME infer/${name}_test_sse4 COMMAND test_infer_${name}_test)
    set_tests_properties(infer/${name}_test_sse4 PROPERTIES LABELS unit
                         ENVIRONMENT "OMP_WAIT_POLICY=passive;FOVEA_ISA=sse4")
  endforeach()
endif()
