fovea_test(data/text_test unit)
fovea_test(data/corpus_test unit)
# Tests that write gzip, or look for the public data sets.
foreach(test corpus_test)
  target_link_libraries(test_data_${test} PRIVATE PkgConfig::zlib)
  target_compile_definitions(test_data_${test} PRIVATE FOVEA_SOURCE="${CMAKE_SOURCE_DIR}")
endforeach()
