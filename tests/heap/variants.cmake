# The heap's own sources compiled once more with other definitions, and a test program on them.
#   blockyard_heap_variant(NAME SOURCES ... DEFINITIONS ... OPTIONS ...)    OPTIONS go to the compiler and the linker
#   With WITHOUT_HEAP: none of the heap's sources but those among SOURCES.
function(blockyard_heap_variant name)
  cmake_parse_arguments(arg "WITHOUT_HEAP" "" "SOURCES;DEFINITIONS;OPTIONS" ${ARGN})
  get_target_property(heap_sources blockyard_heap SOURCES)
  list(TRANSFORM heap_sources PREPEND ${PROJECT_SOURCE_DIR}/library/src/heap/)
  if(arg_WITHOUT_HEAP)
    set(heap_sources)
  endif()
  get_target_property(base_sources blockyard_base SOURCES)
  add_executable(${name} ${arg_SOURCES} ${heap_sources} ${base_sources})
  target_include_directories(${name} PRIVATE
    ${BLOCKYARD_INCLUDES} ${BLOCKYARD_SOURCES} ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE blockyard_flags GTest::gtest GTest::gtest_main Threads::Threads
                        ${CMAKE_DL_LIBS})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 300)
endfunction()

# libblockyard-malloc.so once more, of the heap and the family alone, with the turns of its loops counted.
function(blockyard_heap_bounds_preload name)
  get_target_property(heap_sources blockyard_heap SOURCES)
  list(TRANSFORM heap_sources PREPEND ${PROJECT_SOURCE_DIR}/library/src/heap/)
  get_target_property(family_sources blockyard_malloc_family SOURCES)
  list(APPEND family_sources cxx_library_found.cpp)
  list(TRANSFORM family_sources PREPEND ${PROJECT_SOURCE_DIR}/library/src/heap/malloc/)
  get_target_property(base_sources blockyard_base SOURCES)
  add_library(${name} SHARED ${heap_sources} ${family_sources} ${base_sources})
  target_include_directories(${name} PRIVATE ${BLOCKYARD_INCLUDES} ${BLOCKYARD_SOURCES})
  target_compile_definitions(${name} PRIVATE BLOCKYARD_BOUNDS=1)
  target_compile_options(${name} PRIVATE -fno-builtin)
  target_link_libraries(${name} PRIVATE blockyard_flags Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
