# The component `library`: headers, libblockyard and its CMake package. find_package(blockyard) gives blockyard::static,
# blockyard::shared, blockyard::blockyard, and blockyard::malloc, which also puts the heap in the place of malloc.
# pkg-config has `blockyard` and `blockyard-malloc`.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/blockyard")

install(TARGETS blockyard_static blockyard_shared EXPORT blockyardTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
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

# pkg-config. Paths count from the file's own place, so that the installed folder can move.
set(BLOCKYARD_PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
set(BLOCKYARD_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(BLOCKYARD_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix/.")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(BLOCKYARD_PC_PREFIX "\${pcfiledir}/${up}")
  set(BLOCKYARD_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(BLOCKYARD_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(described blockyard)
if(TARGET blockyard_malloc)
  list(APPEND described blockyard-malloc)
endif()
foreach(name IN LISTS described)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endforeach()
