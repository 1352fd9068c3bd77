# The libraries that the report's page carries, from npm: pinned by version and hash in
# lab/cmake/page/package-lock.json, fetched once, put into build/PRESET/page and from there into the wheel. Where npm or
# the network is missing the build goes on, and `blockyard report --html` says why it can't; the next build tries again.
# Why npm, which is heavy for one file: PyPI, which .venv is filled from anyway, has uPlot only inside packages of other
# purposes. Those looked at (youplot 1.0.0, uplot-python 1.1.1, metaflow-card-uplot 1.0.0) carry older versions, the
# latest 1.6.31, without uPlot's licence and without saying where the file is from. So `make demo`, a newcomer's first
# command, does without the page unless npm is there, and `make build` installs it.
find_program(BLOCKYARD_NPM npm DOC "npm, which fetches the libraries of the report's page")

add_custom_target(blockyard_page ALL
  COMMAND ${CMAKE_COMMAND} "-DNPM=${BLOCKYARD_NPM}" "-DSOURCE=${CMAKE_CURRENT_LIST_DIR}/page"
          "-DTARGET=${CMAKE_BINARY_DIR}/page" -P "${CMAKE_CURRENT_LIST_DIR}/FetchPageLibraries.cmake"
  COMMENT "Libraries of the report's page" VERBATIM)
