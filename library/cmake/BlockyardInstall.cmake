# The component `library`: headers, libblockyard and its CMake package. find_package(blockyard) gives blockyard::static,
# blockyard::shared, blockyard::blockyard, and blockyard::malloc, which also puts the heap in the place of malloc.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/blockyard")

install(TARGETS blockyard_static blockyard_shared EXPORT blockyardTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library)
if(TARGET blockyard_malloc_static)
  install(TARGETS blockyard_malloc_static blockyard_malloc_whole EXPORT blockyardTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/blockyard" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT blockyardTargets NAMESPACE blockyard:: DESTINATION ${package} COMPONENT library)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/blockyardConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/blockyardConfig.cmake" INSTALL_DESTINATION ${package})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/blockyardConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/blockyardConfig.cmake" "${PROJECT_BINARY_DIR}/blockyardConfigVersion.cmake"
        DESTINATION ${package} COMPONENT library)

if(TARGET blockyard_malloc)
  install(TARGETS blockyard_malloc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endif()
