# What `cmake --install` leaves: the program, headers under include/fovea/, libfovea.a, files for find_package and pkg-config.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fovea)
install(TARGETS fovea_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS fovea EXPORT fovea ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT fovea FILE fovea-targets.cmake NAMESPACE fovea:: DESTINATION ${package_dir})
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE PATTERN "*-inl.h" EXCLUDE)

configure_package_config_file(cmake/fovea-config.cmake.in fovea-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fovea-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fovea-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/fovea-config-version.cmake
        DESTINATION ${package_dir})

file(RELATIVE_PATH FOVEA_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(JOIN " " FOVEA_MODULES_SPACED ${FOVEA_MODULES})
configure_file(cmake/fovea.pc.in fovea.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fovea.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
