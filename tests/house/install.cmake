# cmake -D BUILD=... -D SOURCE=... -D WORK=... -D COMPILER=... -P install.cmake
# Installs Fovea under WORK and builds and runs the program in outside/ against it: by find_package, then by pkg-config.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " line ${ARGV})
    message(FATAL_ERROR "${line}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
# Moved after installing: nothing in the package may name the place it was first put.
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)

run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/house/outside -B ${WORK}/outside -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/outside)
run(${WORK}/outside/outside)
message(STATUS "find_package: ${output}")

file(GLOB_RECURSE pc ${WORK}/prefix/*.pc)
get_filename_component(pc_dir ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(sh -c "${COMPILER} ${SOURCE}/tests/house/outside/main.cc $(pkg-config --cflags --libs fovea) -o ${WORK}/by_pkg_config")
run(${WORK}/by_pkg_config)
message(STATUS "pkg-config: ${output}")

run(${WORK}/prefix/bin/fovea --version)
message(STATUS "program: ${output}")
file(REMOVE_RECURSE ${WORK})
