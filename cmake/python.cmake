# The module fovea._core, the room `python`. nanobind comes from PyPI; scikit-build-core (pyproject.toml) says where it is.
find_package(Python 3.9 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
if(NOT Python_Development.Module_FOUND)
  # The space in front keeps CMake from breaking the line.
  message(FATAL_ERROR " fovea: Python 3.9 or later and its headers are missing; run: sudo apt-get install python3-dev")
endif()
if(NOT nanobind_ROOT AND NOT nanobind_DIR)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
find_package(nanobind CONFIG REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/python/*.cc)
# STABLE_ABI: from Python 3.12 on one module serves every later version; before, nanobind has none.
nanobind_add_module(fovea_python STABLE_ABI NB_STATIC NOMINSIZE LTO ${sources})
set_target_properties(fovea_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/fovea)
target_link_libraries(fovea_python PRIVATE fovea_inside)
target_include_directories(fovea_python SYSTEM PRIVATE ${NB_DIR}/include)  # our warnings are not for nanobind
# The libraries inside are nobody else's: their symbols must not meet those of other modules of the process.
target_link_options(fovea_python PRIVATE -Wl,--exclude-libs,ALL)
install(TARGETS fovea_python LIBRARY DESTINATION fovea COMPONENT python)
# By its own name: as fovea._core, Python would find the one of a Fovea that is installed.
nanobind_add_stub(fovea_python_stub MODULE _core OUTPUT ${PROJECT_BINARY_DIR}/python/fovea/_core.pyi
                  PYTHON_PATH ${PROJECT_BINARY_DIR}/python/fovea DEPENDS fovea_python)
install(FILES ${PROJECT_BINARY_DIR}/python/fovea/_core.pyi DESTINATION fovea COMPONENT python)
