# blockyard_add_parts(FOLDER): add every sub-folder of FOLDER that has a CMakeLists.txt, in name order, so that a part
# adds its own folder and edits no shared list.
function(blockyard_add_parts folder)
  file(GLOB parts CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*/CMakeLists.txt")
  foreach(part IN LISTS parts)
    get_filename_component(part "${part}" DIRECTORY)
    if(part MATCHES "/tests/fuzz$")
      continue()
    endif()
    file(RELATIVE_PATH relative "${CMAKE_CURRENT_SOURCE_DIR}" "${part}")
    add_subdirectory("${relative}")
  endforeach()
endfunction()

# blockyard_test(NAME [THREADS] SOURCES... LIBRARIES ...): one GoogleTest program, its cases found at ctest time.
# THREADS: its cases are also run under ThreadSanitizer (label `threads`, target blockyard-thread-tests).
function(blockyard_test name)
  cmake_parse_arguments(arg "THREADS" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  blockyard_unity(${name})
  target_link_libraries(${name} PRIVATE
    blockyard_flags ${arg_LIBRARIES} GTest::gtest GTest::gtest_main Threads::Threads)
  # The default of 5 s is not enough where the machine is busy, or the program runs under an emulator.
  set(discovery DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120)
  if(NOT arg_THREADS)
    gtest_discover_tests(${name} ${discovery})
    return()
  endif()
  gtest_discover_tests(${name} ${discovery} PROPERTIES LABELS threads)
  if(NOT TARGET blockyard-thread-tests)
    add_custom_target(blockyard-thread-tests)
  endif()
  add_dependencies(blockyard-thread-tests ${name})
endfunction()

# blockyard_fuzzer(NAME SOURCES... LIBRARIES ...): one libFuzzer program; its corpus lies in
# tests/fuzz/PART/corpus/NAME.
function(blockyard_fuzzer name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE blockyard_flags ${arg_LIBRARIES} Threads::Threads)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET blockyard-fuzzers)
    add_custom_target(blockyard-fuzzers)
  endif()
  add_dependencies(blockyard-fuzzers ${name})
endfunction()

# blockyard_integration(NAME SOURCES ... [PACKAGES ...] [LIBRARIES ...]): the example integration-NAME, which
# tests/integrations records. PACKAGES are pkg-config's; where it does not find one, the example is not built, and its
# test says so. Linked statically: the recorder sees by_malloc() only there.
function(blockyard_integration name)
  cmake_parse_arguments(arg "" "" "SOURCES;PACKAGES;LIBRARIES" ${ARGN})
  foreach(package IN LISTS arg_PACKAGES)
    pkg_check_modules(BLOCKYARD_PKG_${package} QUIET IMPORTED_TARGET ${package})
    if(NOT BLOCKYARD_PKG_${package}_FOUND)
      message(STATUS "integration-${name} is not built: pkg-config finds no ${package}")
      return()
    endif()
    list(APPEND arg_LIBRARIES PkgConfig::BLOCKYARD_PKG_${package})
  endforeach()
  add_executable(integration-${name} ${arg_SOURCES})
  target_compile_options(integration-${name} PRIVATE -O1)
  target_link_libraries(integration-${name} PRIVATE blockyard_flags blockyard::static ${arg_LIBRARIES})
endfunction()
