# What Cargo builds: adapters written in Rust, and libraries of allocators. One that can't be built (no Cargo, no
# registry) leaves FILE.missing with a sentence in place of FILE, and the build goes on; the next build tries again.
find_program(BLOCKYARD_CARGO cargo)
file(GLOB support CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/crates/support/src/*.rs"
     "${CMAKE_CURRENT_SOURCE_DIR}/crates/lock/src/*.rs")
# Two Cargo processes in one target folder would only wait for one another.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS blockyard_cargo=1)

# The file OUTPUT from the package of a folder of crates/ and what it is linked with (build_crate.cmake).
function(blockyard_crate folder package output)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "WORKSPACE" "LINK")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/crates/${folder}/src/*.rs"
       "${CMAKE_CURRENT_SOURCE_DIR}/crates/${folder}/build.rs")
  add_custom_command(
    OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${output}"
    COMMAND ${CMAKE_COMMAND} -E env --unset=MAKEFLAGS --unset=MFLAGS --unset=CARGO_MAKEFLAGS
            "CARGO_TARGET_DIR=${CMAKE_CURRENT_BINARY_DIR}/cargo"
            ${CMAKE_COMMAND} -D "CARGO=${BLOCKYARD_CARGO}" -D "NAME=${folder}" -D "PACKAGE=${package}"
            -D "OUTPUT=${CMAKE_CURRENT_BINARY_DIR}/${output}" -D "LINK=${arg_LINK}"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/build_crate.cmake"
    DEPENDS ${sources} ${support} build_crate.cmake crates.cmake
            ${arg_WORKSPACE}/Cargo.toml ${arg_WORKSPACE}/Cargo.lock crates/${folder}/Cargo.toml
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/${arg_WORKSPACE}"
    JOB_POOL blockyard_cargo
    COMMENT "Building ${output} with Cargo"
    VERBATIM)
endfunction()

set(outputs)
foreach(name IN ITEMS rpmalloc tlsf snmalloc)
  blockyard_crate(${name} blockyard-adapter-${name} blockyard-adapter-${name}.so WORKSPACE crates)
  list(APPEND outputs "${CMAKE_CURRENT_BINARY_DIR}/blockyard-adapter-${name}.so")
endforeach()

# Libraries that a program can preload. tcmalloc's functions have other names.
set(jemalloc)
set(tcmalloc)
foreach(pair IN ITEMS malloc:Malloc calloc:Calloc realloc:Realloc free:Free memalign:Memalign
                      aligned_alloc:AlignedAlloc posix_memalign:PosixMemalign malloc_usable_size:MallocSize)
  string(REPLACE ":" ";" names ${pair})
  list(GET names 0 name)
  list(GET names 1 own)
  list(APPEND jemalloc -Wl,-u,${name})
  list(APPEND tcmalloc -Wl,-u,TCMallocInternal${own} -Wl,--defsym=${name}=TCMallocInternal${own})
endforeach()
blockyard_crate(jemalloc blockyard-jemalloc libjemalloc-crate.so WORKSPACE crates
                LINK ${CMAKE_C_COMPILER} ${jemalloc} -Wl,-u,mallctl -pthread -lm -ldl)
blockyard_crate(google-tcmalloc blockyard-google-tcmalloc libgoogle-tcmalloc-crate.so WORKSPACE crates/google-tcmalloc
                LINK ${CMAKE_CXX_COMPILER} ${tcmalloc} -pthread -ldl)
list(APPEND outputs "${CMAKE_CURRENT_BINARY_DIR}/libjemalloc-crate.so")
add_custom_target(blockyard-crates ALL DEPENDS ${outputs})
add_custom_target(blockyard-google-tcmalloc DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/libgoogle-tcmalloc-crate.so")
# Minutes to compile, so only on demand.
if(NOT EXISTS "${CMAKE_CURRENT_BINARY_DIR}/libgoogle-tcmalloc-crate.so")
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/libgoogle-tcmalloc-crate.so.missing"
       "it takes minutes to compile: scripts/build release --target blockyard-google-tcmalloc\n")
endif()
