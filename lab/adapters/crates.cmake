# Adapters written in Rust. One that can't be built (no Cargo, no registry) leaves blockyard-adapter-NAME.so.missing
# with a sentence in place of blockyard-adapter-NAME.so, and the build goes on; the next build tries again.
find_program(BLOCKYARD_CARGO cargo)
file(GLOB support CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/crates/support/src/*.rs"
     "${CMAKE_CURRENT_SOURCE_DIR}/crates/lock/src/*.rs")
# Two Cargo processes in one target folder would only wait for one another.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS blockyard_cargo=1)

set(adapters)
foreach(name IN ITEMS rpmalloc tlsf snmalloc)
  set(adapter "${CMAKE_CURRENT_BINARY_DIR}/blockyard-adapter-${name}.so")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/crates/${name}/src/*.rs")
  add_custom_command(
    OUTPUT "${adapter}"
    COMMAND ${CMAKE_COMMAND} -E env --unset=MAKEFLAGS --unset=MFLAGS --unset=CARGO_MAKEFLAGS
            "CARGO_TARGET_DIR=${CMAKE_CURRENT_BINARY_DIR}/cargo"
            ${CMAKE_COMMAND} -D "CARGO=${BLOCKYARD_CARGO}" -D "NAME=${name}" -D "ADAPTER=${adapter}"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/build_crate.cmake"
    DEPENDS ${sources} ${support} build_crate.cmake
            crates/Cargo.toml crates/Cargo.lock crates/${name}/Cargo.toml crates/${name}/build.rs
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/crates"
    JOB_POOL blockyard_cargo
    COMMENT "Building blockyard-adapter-${name}.so with Cargo"
    VERBATIM)
  list(APPEND adapters "${adapter}")
endforeach()
add_custom_target(blockyard-crates ALL DEPENDS ${adapters})
