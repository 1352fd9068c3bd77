# cmake -DNPM=... -DSOURCE=cmake/page -DTARGET=build/PRESET/page -P FetchPageLibraries.cmake
# Does nothing when TARGET holds what SOURCE's lock file asks for.
file(SHA256 "${SOURCE}/package-lock.json" wanted)
set(stamp "${TARGET}/lock.sha256")
if(EXISTS "${stamp}")
  file(READ "${stamp}" present)
  if(present STREQUAL wanted)
    return()
  endif()
endif()

file(REMOVE_RECURSE "${TARGET}")
file(MAKE_DIRECTORY "${TARGET}/npm")

function(give_up reason)
  file(WRITE "${TARGET}/missing.txt" "${reason}\n")
  message(STATUS "blockyard report --html will not be possible: ${reason}")
endfunction()

if(NOT NPM)
  give_up("npm, which fetches the page's libraries, was not found; 'make build' installs it")
  return()
endif()
file(COPY "${SOURCE}/package.json" "${SOURCE}/package-lock.json" DESTINATION "${TARGET}/npm")
execute_process(
  COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
          --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
  WORKING_DIRECTORY "${TARGET}/npm" RESULT_VARIABLE failed
  OUTPUT_FILE "${TARGET}/npm.log" ERROR_FILE "${TARGET}/npm.log")
if(failed)
  give_up("npm could not fetch the page's libraries (is there a network?); build again, and see page/npm.log")
  return()
endif()

set(uplot "${TARGET}/npm/node_modules/uplot")
file(COPY "${uplot}/dist/uPlot.iife.min.js" "${uplot}/dist/uPlot.min.css" DESTINATION "${TARGET}")
configure_file("${uplot}/LICENSE" "${TARGET}/uPlot.LICENSE" COPYONLY)
file(READ "${uplot}/package.json" package)
string(JSON version GET "${package}" version)
file(WRITE "${TARGET}/uPlot.version" "${version}\n")
file(REMOVE_RECURSE "${TARGET}/npm")
file(WRITE "${stamp}" "${wanted}")
