# Finds the libraries that the components need, and sets FOVEA_COMPONENTS to those that are built, lowest first. The
# program, the tests and the like use all of them; another project may need one, so there a component whose libraries
# are missing is left out.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
# Modules of pkg-config: searched here, and again by whoever uses the installed package. nn also needs nlohmann_json.
set(FOVEA_MODULES_attention libhwy)
set(FOVEA_MODULES_nn "")
set(FOVEA_MODULES_tasks sentencepiece icu-uc zlib libjpeg libpng pangocairo)

set(required attention)  # and those before it
if(PROJECT_IS_TOP_LEVEL OR FOVEA_BUILD_PROGRAM OR FOVEA_BUILD_TESTS OR FOVEA_BUILD_EXAMPLES OR FOVEA_BUILD_PYTHON
   OR FOVEA_BUILD_FUZZ)
  set(required tasks)
endif()
set(FOVEA_COMPONENTS "")
set(missing "")  # grows: a component links the components before it
foreach(component attention nn tasks)
  if(component STREQUAL "nn")
    find_package(nlohmann_json 3.9 QUIET)
    if(NOT nlohmann_json_FOUND)
      list(APPEND missing "nlohmann_json (3.9 or later)")
    endif()
  endif()
  foreach(module IN LISTS FOVEA_MODULES_${component})
    pkg_check_modules(${module} QUIET IMPORTED_TARGET ${module})
    if(NOT ${module}_FOUND)
      list(APPEND missing ${module})
    endif()
  endforeach()
  list(JOIN missing ", " names)
  if(NOT missing)
    list(APPEND FOVEA_COMPONENTS ${component})
  elseif(component STREQUAL required)
    # The space in front keeps CMake from breaking the line.
    message(FATAL_ERROR " fovea: needed libraries were not found: ${names}; install their development packages")
  elseif(required STREQUAL "attention")
    message(STATUS "fovea: fovea::${component} is left out, because libraries that it needs were not found: ${names}")
  endif()
endforeach()
