# The heap's own sources compiled once more with other definitions, and what is built on them.

# Sets SOURCES to what the heap, and what it needs, is made of.
macro(blockyard_heap_sources sources)
  get_target_property(${sources} blockyard_heap SOURCES)
  foreach(below base checks pages)
    get_target_property(sources_below blockyard_${below} SOURCES)
    list(APPEND ${sources} ${sources_below})
  endforeach()
endmacro()

# blockyard_heap_objects(NAME DEFINITIONS ... OPTIONS ...): an object library of the heap's sources, compiled as one in
# a fifth of the time. Not those of the calls, whose own functions have the same names.
function(blockyard_heap_objects name)
  cmake_parse_arguments(arg "" "" "DEFINITIONS;OPTIONS" ${ARGN})
  blockyard_heap_sources(sources)
  add_library(${name} OBJECT ${sources})
  set(apart malloc_api arena_api process_api)
  list(TRANSFORM apart PREPEND ${PROJECT_SOURCE_DIR}/library/src/heap/api/)
  list(TRANSFORM apart APPEND .cpp)
  set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  target_include_directories(${name} PRIVATE ${BLOCKYARD_INCLUDES} ${BLOCKYARD_SOURCES} ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PUBLIC ${arg_DEFINITIONS})
  target_compile_options(${name} PRIVATE -fno-builtin ${BLOCKYARD_OWN_CODE} ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE blockyard_flags)
endfunction()

# A test program:
#   blockyard_heap_variant(NAME [WITHOUT_HEAP | HEAP ...] SOURCES ... DEFINITIONS ... OPTIONS ... OBJECTS ...)
#   OPTIONS go to the compiler and the linker. With WITHOUT_HEAP: none of the heap's sources but those among SOURCES.
#   OBJECTS are further object libraries. HEAP is the object library of a heap, in place of one for this program alone.
function(blockyard_heap_variant name)
  cmake_parse_arguments(arg "WITHOUT_HEAP" "HEAP" "SOURCES;DEFINITIONS;OPTIONS;OBJECTS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  blockyard_unity(${name})
  if(arg_WITHOUT_HEAP)
    get_target_property(sources blockyard_base SOURCES)
    target_sources(${name} PRIVATE ${sources})
  elseif(NOT arg_HEAP)
    set(arg_HEAP ${name}_objects)
    blockyard_heap_objects(${arg_HEAP} DEFINITIONS ${arg_DEFINITIONS} OPTIONS ${arg_OPTIONS})
  endif()
  target_include_directories(${name} PRIVATE
    ${BLOCKYARD_INCLUDES} ${BLOCKYARD_SOURCES} ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE ${arg_HEAP} ${arg_OBJECTS} blockyard_flags GTest::gtest GTest::gtest_main
                        Threads::Threads ${CMAKE_DL_LIBS})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 300)
endfunction()

# libblockyard-malloc.so once more, of that heap and the family alone.
function(blockyard_heap_bounds_preload name objects)
  get_target_property(family_sources blockyard_malloc_family SOURCES)
  list(APPEND family_sources cxx_library_found.cpp)
  list(TRANSFORM family_sources PREPEND ${PROJECT_SOURCE_DIR}/library/src/heap/malloc/)
  add_library(${name} SHARED ${family_sources})
  target_include_directories(${name} PRIVATE ${BLOCKYARD_INCLUDES} ${BLOCKYARD_SOURCES})
  target_compile_options(${name} PRIVATE -fno-builtin)
  target_link_libraries(${name} PRIVATE ${objects} blockyard_flags Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
