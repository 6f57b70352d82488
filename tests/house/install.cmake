# cmake -D BUILD=... -D SOURCE=... -D WORK=... -D COMPILER=... -P install.cmake
# Installs Fovea under WORK and builds and runs the programs in outside/ against it: by find_package, then by pkg-config.
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

# Each component by itself: `attention` must not ask for cairo, ICU, JPEG or SentencePiece.
foreach(component attention nn tasks)
  run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/house/outside -B ${WORK}/${component}
      -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release
      -DCOMPONENT=${component})
  run(${CMAKE_COMMAND} --build ${WORK}/${component})
  run(${WORK}/${component}/outside)
  message(STATUS "find_package(fovea COMPONENTS ${component}): ${output}")
  run(ldd ${WORK}/${component}/outside)
  if(component STREQUAL attention AND output MATCHES "cairo|icu|jpeg|sentencepiece")
    message(FATAL_ERROR "fovea::attention links\n${output}")
  endif()
endforeach()

# Every public header compiles alone and names nothing but <fovea/...> and other libraries.
file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*.h)
set(all "")
foreach(header IN LISTS headers)
  file(STRINGS ${WORK}/prefix/include/${header} inside REGEX "^#include \"")
  if(inside)
    message(FATAL_ERROR "${header}: ${inside}")
  endif()
  string(APPEND all "#include <${header}>\n")
endforeach()
file(WRITE ${WORK}/all.cc "${all}int main() {}\n")
run(${COMPILER} -std=c++20 -fsyntax-only -I${WORK}/prefix/include ${WORK}/all.cc)

file(GLOB_RECURSE pc ${WORK}/prefix/*.pc)
get_filename_component(pc_dir ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(sh -c "${COMPILER} ${SOURCE}/tests/house/outside/tasks.cc $(pkg-config --cflags --libs fovea) -o ${WORK}/by_pkg_config")
run(${WORK}/by_pkg_config)
message(STATUS "pkg-config: ${output}")

run(${WORK}/prefix/bin/fovea --version)
message(STATUS "program: ${output}")
file(REMOVE_RECURSE ${WORK})
