# The component `wheel`: the native parts, all in one folder, for the Python wheel (pyproject.toml).
# The component `library` has the lab's headers and its recorder too: they are useful without Python.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/blockyard" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
# The library starts the collector, and looks for it beside itself.
install(TARGETS blockyard_record blockyard-collect
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)

# Every program, preload and adapter of this tree goes into the wheel: a component that adds one edits no list. What
# only tests load is left out by lying in tests/.
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

blockyard_wheel_targets("${PROJECT_SOURCE_DIR}" lab_targets)
foreach(target IN ITEMS blockyard_shared blockyard_malloc)
  if(TARGET ${target})
    list(APPEND lab_targets ${target})
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/adapters/allocators.toml" "${PROJECT_SOURCE_DIR}/src/replay/run/run_options.def"
        DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
# What Cargo built, or the sentence that says why there is none.
install(DIRECTORY "${PROJECT_BINARY_DIR}/adapters/" DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
        FILES_MATCHING REGEX "/(blockyard-adapter-[a-z]+|lib[a-z-]+-crate)\\.so(\\.missing)?$"
        REGEX "/(cargo|CMakeFiles)$" EXCLUDE)
# The report's page: its libraries, or the sentence that says why there are none.
install(DIRECTORY "${CMAKE_BINARY_DIR}/page" DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
        PATTERN "npm.log" EXCLUDE PATTERN "npm" EXCLUDE PATTERN "lock.sha256" EXCLUDE)
set_target_properties(${lab_targets} PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(blockyard-launch PROPERTIES INSTALL_RPATH "")  # a static program has no path to rewrite
install(TARGETS ${lab_targets}
        RUNTIME DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
        LIBRARY DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL NAMELINK_SKIP)
