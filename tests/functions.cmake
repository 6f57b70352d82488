find_package(GTest REQUIRED)
set(FOVEA_TESTED fovea_inside)  # what the tests link

# What tests start as the program: the program, or in a cross-build a script that runs it in the emulator.
set(FOVEA_STARTED $<TARGET_FILE:fovea_cli>)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set(FOVEA_STARTED ${PROJECT_BINARY_DIR}/tests/fovea)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  file(GENERATE OUTPUT ${FOVEA_STARTED} CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:fovea_cli> \"$@\"\n"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()

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

# The programs of the tests that `make clang` and `make arm64` run.
if(NOT TARGET quick_tests)
  add_custom_target(quick_tests)
endif()

# fovea_test(room/file labels...): such a program, run by ctest as <room>/<file>.
function(fovea_test path)
  fovea_test_program(${path})
  string(REPLACE "/" "_" target ${path})
  add_test(NAME ${path} COMMAND test_${target})
  if("${ARGN}" MATCHES "unit|per_isa|grad")
    add_dependencies(quick_tests test_${target})
  endif()
  set(environment "")
  # The thread sanitizer looks at how work is shared, not at numbers: an eighth of a kernel's cases shows it as well.
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize=thread" AND "per_isa" IN_LIST ARGN)
    list(APPEND environment GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX=0)
  endif()
  set_tests_properties(${path} PROPERTIES LABELS "${ARGN}" ENVIRONMENT "${environment}")
endfunction()
