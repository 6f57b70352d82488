# What `cmake --install` leaves: the program, the public headers under include/fovea/, a library for each component, and
# files for find_package and pkg-config.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)
if(TARGET fovea_cli)
  install(TARGETS fovea_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/fovea DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# A component's targets are files of their own, so that using one asks for its libraries alone.
set(FOVEA_PC_REQUIRES "")
set(FOVEA_PC_LIBS "")
foreach(component IN LISTS FOVEA_COMPONENTS)
  install(TARGETS fovea_${component} EXPORT fovea-${component} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT fovea-${component} FILE fovea-${component}.cmake NAMESPACE fovea:: DESTINATION ${package_dir})
  list(APPEND FOVEA_PC_REQUIRES ${FOVEA_MODULES_${component}})
  list(PREPEND FOVEA_PC_LIBS -lfovea_${component})
endforeach()
if(TARGET fovea_nn)
  list(PREPEND FOVEA_PC_REQUIRES nlohmann_json)
endif()

configure_package_config_file(cmake/fovea-config.cmake.in fovea-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fovea-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fovea-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/fovea-config-version.cmake
        DESTINATION ${package_dir})

file(RELATIVE_PATH FOVEA_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(JOIN FOVEA_PC_REQUIRES " " FOVEA_PC_REQUIRES)
list(JOIN FOVEA_PC_LIBS " " FOVEA_PC_LIBS)
configure_file(cmake/fovea.pc.in fovea.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fovea.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
