# One folder under src/ is one room is one object library; rooms make up the components that others link:
#   fovea::attention   tensors, gradients and attention
#   fovea::nn          layers, files of weights, training
#   fovea::tasks       models, text and pictures, translating, classifying, drawing
#   fovea::fovea       all of them
# X.simd.cc is compiled once per instruction-set level, with FOVEA_LEVEL naming the level's namespace.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(FOVEA_LEVELS sse4 avx2 avx512)
  set(FOVEA_FLAGS_sse4 -msse4.2 -mpclmul -maes -mpopcnt)
  set(FOVEA_FLAGS_avx2 ${FOVEA_FLAGS_sse4} -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt)
  set(FOVEA_FLAGS_avx512 -march=skylake-avx512 -mprefer-vector-width=512)
else()
  set(FOVEA_LEVELS neon)
  # Highway declares all its NEON functions with "+crypto", and only code of the same target may inline them. Nothing here
  # uses these instructions, so what is built also runs on CPUs without them.
  set(FOVEA_FLAGS_neon -march=armv8-a+crypto)
endif()

# How Fovea's own sources are compiled; never passed on to whoever links it.
add_library(fovea_flags INTERFACE)
target_compile_options(fovea_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(fovea_flags INTERFACE -Wno-restrict)  # cries wolf at std::string + (GCC bug 105651)
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Where every CPU has a fused multiply-add, compilers use it in some copies of a formula and not in others. Two paths that
  # promise the same bits (rows of an embedding, and all of it) would differ; the kernels name it where they want it.
  target_compile_options(fovea_flags INTERFACE -ffp-contract=off)
endif()
target_compile_definitions(fovea_flags INTERFACE FOVEA_VERSION="${PROJECT_VERSION}")
target_include_directories(fovea_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)

set(FOVEA_ROOMS "")

# fovea_room(name number COMPONENT component [LINK libraries its headers need] [LINK_PRIVATE libraries only its sources
# need]); nothing if its component is not built.
function(fovea_room name number)
  cmake_parse_arguments(ROOM "" "COMPONENT" "LINK;LINK_PRIVATE" ${ARGN})
  if(NOT ROOM_COMPONENT IN_LIST FOVEA_COMPONENTS)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  set(simd_sources ${sources})
  list(FILTER simd_sources INCLUDE REGEX "\\.simd\\.cc$")
  list(FILTER sources EXCLUDE REGEX "\\.simd\\.cc$")
  # X.html becomes the text fovea::kXHtml.
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.html)
  foreach(page IN LISTS pages)
    get_filename_component(stem ${page} NAME_WE)
    string(SUBSTRING ${stem} 0 1 initial)
    string(TOUPPER ${initial} initial)
    string(SUBSTRING ${stem} 1 -1 rest)
    set(embedded ${PROJECT_BINARY_DIR}/embedded/${name}_${stem}.cc)
    add_custom_command(OUTPUT ${embedded}
      COMMAND ${CMAKE_COMMAND} -D FILE=${page} -D OUT=${embedded} -D NAME=k${initial}${rest}Html
              -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${page} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
    list(APPEND sources ${embedded})
  endforeach()
  set(target fovea_room_${name})
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PRIVATE fovea_flags PUBLIC ${ROOM_LINK} PRIVATE ${ROOM_LINK_PRIVATE})
  foreach(lower IN LISTS FOVEA_ROOMS)
    string(REPLACE ":" ";" lower ${lower})
    list(GET lower 0 lower_name)
    list(GET lower 1 lower_number)
    if(lower_number LESS number)
      target_link_libraries(${target} PUBLIC fovea_room_${lower_name})
    endif()
  endforeach()
  set(objects $<TARGET_OBJECTS:${target}>)
  if(simd_sources)
    foreach(level IN LISTS FOVEA_LEVELS)
      set(simd_target fovea_room_${name}_${level})
      add_library(${simd_target} OBJECT ${simd_sources})
      target_compile_options(${simd_target} PRIVATE ${FOVEA_FLAGS_${level}})
      target_compile_definitions(${simd_target} PRIVATE FOVEA_LEVEL=${level})
      target_link_libraries(${simd_target} PRIVATE fovea_flags ${ROOM_LINK} ${ROOM_LINK_PRIVATE})
      list(APPEND objects $<TARGET_OBJECTS:${simd_target}>)
    endforeach()
  endif()
  set(FOVEA_ROOMS ${FOVEA_ROOMS} ${name}:${number} PARENT_SCOPE)
  foreach(list OBJECTS LINK LINK_PRIVATE)
    set(more ${ROOM_${list}})
    if(list STREQUAL OBJECTS)
      set(more ${objects})
    endif()
    set(FOVEA_${ROOM_COMPONENT}_${list} ${FOVEA_${ROOM_COMPONENT}_${list}} ${more} PARENT_SCOPE)
  endforeach()
endfunction()

# The components, fovea::fovea, and fovea_inside for Fovea's own programs and tests, which include "room/file.h". With
# FOVEA_PREBUILT (the build folder of another configuration of these sources) its libraries are linked instead of built.
function(fovea_libraries)
  fovea_public_headers()
  set(lower "")
  foreach(component IN LISTS FOVEA_COMPONENTS)
    set(target fovea_${component})
    if(FOVEA_PREBUILT)
      add_library(${target} STATIC IMPORTED)
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${FOVEA_PREBUILT}/lib${target}.a)
      target_link_libraries(${target} INTERFACE ${lower} ${FOVEA_${component}_LINK} ${FOVEA_${component}_LINK_PRIVATE})
      set(lower ${target})
      continue()
    endif()
    add_library(${target} STATIC ${FOVEA_${component}_OBJECTS})
    add_library(fovea::${component} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${component})
    add_dependencies(${target} fovea_headers)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PUBLIC ${lower} ${FOVEA_${component}_LINK} PRIVATE ${FOVEA_${component}_LINK_PRIVATE})
    set(lower ${target})
  endforeach()
  if(TARGET fovea_tasks)
    add_library(fovea_all INTERFACE)
    add_library(fovea::fovea ALIAS fovea_all)
    set_target_properties(fovea_all PROPERTIES EXPORT_NAME fovea)
    target_link_libraries(fovea_all INTERFACE ${lower})
  endif()
  add_library(fovea_inside INTERFACE)
  foreach(component IN LISTS FOVEA_COMPONENTS)
    target_link_libraries(fovea_inside INTERFACE ${FOVEA_${component}_LINK})
  endforeach()
  target_link_libraries(fovea_inside INTERFACE fovea_flags $<LINK_ONLY:${lower}>)
endfunction()

# What others include, as <fovea/room/file.h>: the headers named in cmake/headers.txt and what those include, copied to
# include/fovea/ in the build folder with their includes spelled the same way.
function(fovea_public_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h)
  set(stamp ${PROJECT_BINARY_DIR}/include/headers.stamp)
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}/src -D LIST=${PROJECT_SOURCE_DIR}/cmake/headers.txt
            -D OUT=${PROJECT_BINARY_DIR}/include/fovea -D STAMP=${stamp} -P ${PROJECT_SOURCE_DIR}/cmake/headers.cmake
    DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/cmake/headers.txt ${PROJECT_SOURCE_DIR}/cmake/headers.cmake)
  add_custom_target(fovea_headers DEPENDS ${stamp})
endfunction()
