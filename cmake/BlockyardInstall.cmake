# find_package(blockyard) after `cmake --install`; targets blockyard::static, blockyard::shared, blockyard::blockyard.
include(CMakePackageConfigHelpers)
install(TARGETS blockyard_static blockyard_shared EXPORT blockyardTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/blockyard" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT blockyardTargets NAMESPACE blockyard:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockyard COMPONENT library)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/blockyardConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/blockyardConfig.cmake" INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockyard)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/blockyardConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/blockyardConfig.cmake" "${PROJECT_BINARY_DIR}/blockyardConfigVersion.cmake"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockyard COMPONENT library)
