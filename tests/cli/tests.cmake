# fovea_cli_test(room/file labels...): a test that runs the built program.
function(fovea_cli_test path)
  fovea_test(${path} ${ARGN})
  string(REPLACE "/" "_" target ${path})
  target_compile_definitions(test_${target} PRIVATE FOVEA_PROGRAM="$<TARGET_FILE:fovea_cli>")
  target_link_libraries(test_${target} PRIVATE nlohmann_json::nlohmann_json)
  add_dependencies(test_${target} fovea_cli)
endfunction()

fovea_cli_test(cli/main_test unit)
fovea_cli_test(cli/score_test unit)
target_link_libraries(test_cli_score_test PRIVATE PkgConfig::zlib)
target_compile_definitions(test_cli_score_test PRIVATE FOVEA_SOURCE="${CMAKE_SOURCE_DIR}")
fovea_cli_test(cli/pattern_test unit)
