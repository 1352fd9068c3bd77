# cmake -D CARGO=... -D NAME=... -D ADAPTER=... -P build_crate.cmake: builds one crate of the workspace in the current folder
# and puts its shared object at ADAPTER; on failure a sentence at ADAPTER.missing and Cargo's words at ADAPTER.log.
function(give_up sentence)
  file(REMOVE "${ADAPTER}")
  file(WRITE "${ADAPTER}.missing" "${sentence}\n")
  message(NOTICE "blockyard: the allocator ${NAME} will be missing: ${sentence}")
endfunction()

if(NOT CARGO)
  give_up("Cargo was not found when Blockyard was built")
  return()
endif()
execute_process(
  COMMAND "${CARGO}" build --release --locked -p blockyard-adapter-${NAME}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
file(WRITE "${ADAPTER}.log" "${output}")
if(NOT result EQUAL 0)
  give_up("Cargo could not build it; its output is in ${ADAPTER}.log")
  return()
endif()
configure_file("$ENV{CARGO_TARGET_DIR}/release/libblockyard_adapter_${NAME}.so" "${ADAPTER}" COPYONLY)
file(TOUCH "${ADAPTER}")
file(REMOVE "${ADAPTER}.missing")
