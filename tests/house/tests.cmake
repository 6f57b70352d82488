# Tests of the house itself: rooms, symbols, code that must not compile, the installed package, the code shown in README and docs.
fovea_test(house/layers_test layers)
target_sources(test_house_layers_test PRIVATE house/layers.cc)
target_compile_definitions(test_house_layers_test PRIVATE FOVEA_ROOT="${PROJECT_SOURCE_DIR}")

# Sanitizers and low optimisation leave calls that a release build inlines: only that one is shipped and judged.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(objects "")
  foreach(level IN LISTS FOVEA_LEVELS)
    string(APPEND objects "$<JOIN:$<TARGET_OBJECTS:fovea_room_kernels_${level}>,\n>\n")
  endforeach()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/tests/level_objects.txt CONTENT "${objects}")
  add_library(planted_weak OBJECT house/planted_weak.cc)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/tests/planted_objects.txt CONTENT "$<TARGET_OBJECTS:planted_weak>\n")
  fovea_test(house/symbols_test layers)
  add_dependencies(test_house_symbols_test planted_weak)
  target_compile_definitions(test_house_symbols_test PRIVATE
    FOVEA_NM="${CMAKE_NM}"
    FOVEA_LEVEL_OBJECTS="${PROJECT_BINARY_DIR}/tests/level_objects.txt"
    FOVEA_PLANTED_OBJECTS="${PROJECT_BINARY_DIR}/tests/planted_objects.txt")
endif()

add_test(NAME house/refused
         COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D WORK=${PROJECT_BINARY_DIR}/tests/refused
                 -D COMPILER=${CMAKE_CXX_COMPILER} -P ${CMAKE_CURRENT_SOURCE_DIR}/house/refused.cmake)
set_tests_properties(house/refused PROPERTIES LABELS layers)

add_test(NAME house/install
         COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D SOURCE=${PROJECT_SOURCE_DIR}
                 -D WORK=${PROJECT_BINARY_DIR}/tests/install -D COMPILER=${CMAKE_CXX_COMPILER}
                 -P ${CMAKE_CURRENT_SOURCE_DIR}/house/install.cmake)
set_tests_properties(house/install PROPERTIES LABELS install)

# Fovea inside another project's build, by add_subdirectory and by FetchContent.
foreach(way subdirectory fetch)
  add_test(NAME house/inside_${way}
           COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D WORK=${PROJECT_BINARY_DIR}/tests/inside_${way}
                   -D COMPILER=${CMAKE_CXX_COMPILER} -D LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER} -D WAY=${way}
                   -P ${CMAKE_CURRENT_SOURCE_DIR}/house/inside.cmake)
  set_tests_properties(house/inside_${way} PROPERTIES LABELS install)
endforeach()
include(${CMAKE_CURRENT_SOURCE_DIR}/house/shown_code.cmake)

fovea_test(house/shown_options_test unit)
target_compile_definitions(test_house_shown_options_test PRIVATE
  FOVEA_ROOT="${PROJECT_SOURCE_DIR}" FOVEA_PROGRAM="${FOVEA_STARTED}")
add_dependencies(test_house_shown_options_test fovea_cli)
