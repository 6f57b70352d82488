# cmake -D SOURCE=... -D WORK=... -D COMPILER=... -D LAUNCHER=... -D WAY=subdirectory|fetch -P inside.cmake
# A project that has Fovea inside its own build: its flags and output folders stay its own, and it gets the component it
# asks for.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " line ${ARGV})
    message(FATAL_ERROR "${line}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(COPY ${SOURCE}/tests/house/outside/attention.cc DESTINATION ${WORK}/project)
if(WAY STREQUAL fetch)
  set(include "include(FetchContent)\nFetchContent_Declare(fovea SOURCE_DIR ${SOURCE})\nFetchContent_MakeAvailable(fovea)")
else()
  set(include "add_subdirectory(${SOURCE} fovea)")
endif()
file(WRITE ${WORK}/project/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES CXX)
set(CMAKE_CXX_FLAGS_RELEASE \"-O1\")
${include}
if(NOT CMAKE_CXX_FLAGS_RELEASE STREQUAL \"-O1\" OR CMAKE_RUNTIME_OUTPUT_DIRECTORY OR TARGET fovea_cli)
  message(FATAL_ERROR \"Fovea changed the project around it\")
endif()
add_executable(host attention.cc)
target_link_libraries(host PRIVATE fovea::attention)
")
run(${CMAKE_COMMAND} -G Ninja -S ${WORK}/project -B ${WORK}/build -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_BUILD_TYPE=Release)
if(WAY STREQUAL subdirectory)
  run(${CMAKE_COMMAND} --build ${WORK}/build --target host)
  run(${WORK}/build/host)
endif()
file(REMOVE_RECURSE ${WORK})
