# The libraries that the report's page carries, from npm: pinned by version and hash in
# lab/cmake/page/package-lock.json, fetched once, put into build/PRESET/page and from there into the wheel. Where npm or
# the network is missing the build goes on, and `blockyard report --html` says why it can't; the next build tries again.
find_program(BLOCKYARD_NPM npm DOC "npm, which fetches the libraries of the report's page")

add_custom_target(blockyard_page ALL
  COMMAND ${CMAKE_COMMAND} "-DNPM=${BLOCKYARD_NPM}" "-DSOURCE=${CMAKE_CURRENT_LIST_DIR}/page"
          "-DTARGET=${CMAKE_BINARY_DIR}/page" -P "${CMAKE_CURRENT_LIST_DIR}/FetchPageLibraries.cmake"
  COMMENT "Libraries of the report's page" VERBATIM)
