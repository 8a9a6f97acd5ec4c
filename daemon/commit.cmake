# Writes OUT, which says of which commit SOURCE is: COMMIT, else what GIT knows of it, else "unknown". Run at each build (cmake -P); a file that
# would be the same is left alone, so that nothing is compiled again.
if(NOT COMMIT AND GIT)
  # The owner of the folder may be another user (a container that builds a mounted folder).
  set(git ${GIT} -c safe.directory=* -C ${SOURCE} --no-optional-locks)
  # Sources that were unpacked within another repository are not of its commits.
  execute_process(COMMAND ${git} rev-parse --show-prefix OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed AND prefix STREQUAL "")
    execute_process(COMMAND ${git} describe --always --dirty --abbrev=12 "--exclude=*"
      OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT COMMIT MATCHES "^[-+.0-9A-Za-z_~]+$")
  set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#include "daemon/cli/commit.h"

std::string_view bellhop::commit() { return "@COMMIT@"; }
]])
