# Flags that every target of this tree shares. Link blockyard_flags PRIVATE: none of it leaks to consumers.
if(NOT TARGET blockyard_flags)
  add_library(blockyard_flags INTERFACE)
  target_compile_features(blockyard_flags INTERFACE cxx_std_20 c_std_11)
  target_compile_options(blockyard_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
    $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
    $<$<NOT:$<BOOL:${MSVC}>>:-fno-omit-frame-pointer>
    # MinGW checks formats by an older C library's than the one it links, and knows no visibility.
    $<$<BOOL:${WIN32}>:-Wno-format;-Wno-attributes>
    $<$<BOOL:${BLOCKYARD_WERROR}>:-Werror>)
  target_compile_definitions(blockyard_flags INTERFACE
    $<$<BOOL:${BLOCKYARD_CHECKED}>:BLOCKYARD_CHECKED=1>
    $<$<BOOL:${BLOCKYARD_OBSERVED}>:BLOCKYARD_OBSERVED=1>)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_package(Threads REQUIRED)

# blockyard_unity(TARGET...): compiles its sources eight at a time, in less than half of the time of each by itself. Not
# for allocators, which are measured, nor for what runs inside foreign programs. Clang compiles each source by itself,
# so one that lacks an include is found, and clang-tidy sees sources.
function(blockyard_unity)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON)
  endif()
endfunction()
