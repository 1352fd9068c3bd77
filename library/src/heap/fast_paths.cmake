# How the heap's fast paths are compiled. They make no calls: a frame pointer there costs a push and a pop of every
# malloc and free. And where a branch crosses 32 bytes, Intel's cores from Skylake to Cascade Lake decode that line
# again each time (Jump Conditional Code erratum, 2019): the assembler avoids it by longer instructions.
set(options -fomit-frame-pointer)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND options -Wa,-mbranches-within-32B-boundaries)
  else()
    list(APPEND options -mbranches-within-32B-boundaries)
  endif()
endif()
# Each begins a cache line: at 16 more, a pair of malloc and free took 6.2 ns, not 5.9, with the same instructions.
list(APPEND options -falign-functions=64)
if(MSVC)
  set(options "")
endif()
set_source_files_properties(src/heap/api/malloc_api.cpp src/heap/api/arena_api.cpp src/heap/front/small_blocks.cpp
                            PROPERTIES COMPILE_OPTIONS "${options}")
if(BLOCKYARD_SANITIZER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # One source for all but these, in a fifth of the time. Nothing of a sanitizer's build is measured.
  set_source_files_properties(src/heap/api/malloc_api.cpp src/heap/api/arena_api.cpp src/heap/api/process_api.cpp
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(blockyard_heap PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()
set(BLOCKYARD_HEAP_FAST_PATH_OPTIONS "${options}" CACHE INTERNAL "How the fast paths are compiled, for bench/heap too")
