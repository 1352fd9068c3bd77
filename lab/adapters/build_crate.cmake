# cmake -D CARGO=... -D NAME=... -D PACKAGE=... -D OUTPUT=... [-D LINK=COMPILER;OPTION...] -P build_crate.cmake: builds
# one package of the workspace in the current folder and puts its shared object at OUTPUT; with LINK, its static library
# linked into one. On failure a sentence at OUTPUT.missing and Cargo's words at OUTPUT.log.
function(give_up sentence)
  file(REMOVE "${OUTPUT}")
  file(WRITE "${OUTPUT}.missing" "${sentence}\n")
  message(NOTICE "blockyard: the allocator ${NAME} will be missing: ${sentence}")
endfunction()

if(NOT CARGO)
  give_up("Cargo was not found when Blockyard was built")
  return()
endif()

# Cargo before 1.70 (Debian 12 has 1.65) knows the registry only as a git repository of the whole index, at GitHub:
# minutes to clone, and out of reach on a machine that may ask nothing but registries. It already reads the index of
# today file by file, as an unstable feature. So such a Cargo fetches the crates that Cargo.lock names (their checksums
# are checked) with that feature on, and compiles them without it.
set(source)
execute_process(COMMAND "${CARGO}" --version OUTPUT_VARIABLE version ERROR_QUIET)
if(version MATCHES "^cargo ([0-9.]+)" AND CMAKE_MATCH_1 VERSION_LESS 1.70)
  set(vendored "$ENV{CARGO_TARGET_DIR}/vendored")
  set(source --offline --config "source.crates-io.replace-with='vendored'"
      --config "source.vendored.directory='${vendored}'")
  file(SHA256 Cargo.lock lock)
  if(NOT EXISTS "${vendored}/${lock}")
    file(REMOVE_RECURSE "${vendored}")
    execute_process(
      COMMAND ${CMAKE_COMMAND} -E env RUSTC_BOOTSTRAP=1 "${CARGO}"
              -Z sparse-registry vendor --locked --quiet "${vendored}"
      RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
      file(WRITE "${OUTPUT}.log" "${output}")
      give_up("Cargo could not fetch its crate; its output is in ${OUTPUT}.log")
      return()
    endif()
    file(TOUCH "${vendored}/${lock}")
  endif()
endif()

execute_process(
  COMMAND "${CARGO}" build --release --locked ${source} -p ${PACKAGE}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
file(WRITE "${OUTPUT}.log" "${output}")
if(NOT result EQUAL 0)
  give_up("Cargo could not build it; its output is in ${OUTPUT}.log")
  return()
endif()
string(REPLACE "-" "_" file "${PACKAGE}")
if(LINK)
  list(POP_FRONT LINK compiler)
  execute_process(
    COMMAND "${compiler}" -shared -o "${OUTPUT}" "$ENV{CARGO_TARGET_DIR}/release/lib${file}.a" ${LINK}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  file(APPEND "${OUTPUT}.log" "${output}")
  if(NOT result EQUAL 0)
    give_up("it could not be linked; the linker's output is in ${OUTPUT}.log")
    return()
  endif()
else()
  configure_file("$ENV{CARGO_TARGET_DIR}/release/lib${file}.so" "${OUTPUT}" COPYONLY)
endif()
file(TOUCH "${OUTPUT}")
file(REMOVE "${OUTPUT}.missing")
