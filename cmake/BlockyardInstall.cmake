# Two things are installed, each a component of its own:
#   library   headers, libblockyard and its CMake package: find_package(blockyard) gives blockyard::static, blockyard::shared,
#             blockyard::blockyard, and blockyard::malloc, which also puts the heap in the place of malloc
#   wheel     the lab's native parts, all in one folder, for the Python wheel (pyproject.toml)
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

# The drop-in malloc and the recorder are useful without Python too.
foreach(target IN ITEMS blockyard_malloc blockyard_record)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  endif()
endforeach()

# Every program, preload and adapter of this tree goes into the wheel: a room that adds one edits no list. What only tests
# load is left out by lying in tests/.
function(blockyard_wheel_targets folder result)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  set(found)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(sub IN LISTS below)
    blockyard_wheel_targets("${sub}" inner)
    list(APPEND found ${inner})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

if(BLOCKYARD_LAB)
  blockyard_wheel_targets("${PROJECT_SOURCE_DIR}/src" wheel_targets)
  if(EXISTS "${PROJECT_SOURCE_DIR}/adapters/CMakeLists.txt")
    blockyard_wheel_targets("${PROJECT_SOURCE_DIR}/adapters" adapter_targets)
    install(FILES "${PROJECT_SOURCE_DIR}/adapters/allocators.toml" DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
    # An adapter built by Cargo, or the sentence that says why there is none.
    install(DIRECTORY "${PROJECT_BINARY_DIR}/adapters/" DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
            FILES_MATCHING REGEX "/blockyard-adapter-[a-z]+\\.so(\\.missing)?$"
            REGEX "/(cargo|CMakeFiles)$" EXCLUDE)
  endif()
  # The report's page: its libraries, or the sentence that says why there are none.
  install(DIRECTORY "${PROJECT_BINARY_DIR}/page" DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
          PATTERN "npm.log" EXCLUDE PATTERN "npm" EXCLUDE PATTERN "lock.sha256" EXCLUDE)
  set_target_properties(${wheel_targets} ${adapter_targets} PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${wheel_targets} ${adapter_targets}
          RUNTIME DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
          LIBRARY DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL NAMELINK_SKIP)
endif()
