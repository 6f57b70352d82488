find_package(GTest REQUIRED)
set(FOVEA_TESTED fovea_inside)  # what the tests link

# fovea_test_program(room/file): one program from tests/<room>/<file>.cc, for tests that call it in ways of their own.
function(fovea_test_program path)
  string(REPLACE "/" "_" target ${path})
  add_executable(test_${target} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${path}.cc)
  set_target_properties(test_${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(test_${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Tests spend their time in the libraries: light optimisation of their own code builds them a third faster.
  target_compile_options(test_${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(test_${target} PRIVATE ${FOVEA_TESTED} GTest::gtest GTest::gmock GTest::gtest_main)
endfunction()

# fovea_test(room/file labels...): such a program, run by ctest as <room>/<file>.
function(fovea_test path)
  fovea_test_program(${path})
  string(REPLACE "/" "_" target ${path})
  add_test(NAME ${path} COMMAND test_${target})
  set(environment "")
  # The thread sanitizer looks at how work is shared, not at numbers: an eighth of a kernel's cases shows it as well.
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize=thread" AND "per_isa" IN_LIST ARGN)
    list(APPEND environment GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX=0)
  endif()
  set_tests_properties(${path} PROPERTIES LABELS "${ARGN}" ENVIRONMENT "${environment}")
endfunction()
