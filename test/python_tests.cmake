# bellhop_python_tests(LABEL [name=value ...] [VARIANT name] [ONLY stem ...]): one CTest entry for each test_*.py of the calling folder, or of
# those whose names without test_ are given. They are run by Debian's own interpreter, for which its packages pika and pytest are made. Values
# are added to the environment, the variant to the entries' names.
function(bellhop_python_tests label)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "VARIANT" "ONLY")
  # Sanitizers slow everything; every deadline in the tests grows with this.
  set(time_factor 1)
  if(BELLHOP_SANITIZE)
    set(time_factor 4)
  endif()
  math(EXPR limit "600 * ${time_factor}")
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test_*.py)
  foreach(test ${tests})
    get_filename_component(stem ${test} NAME_WE)
    string(REGEX REPLACE "^test_" "" stem ${stem})
    if(arg_ONLY AND NOT stem IN_LIST arg_ONLY)
      continue()
    endif()
    if(arg_VARIANT)
      string(PREPEND stem "${arg_VARIANT}/")
    endif()
    add_test(NAME ${label}/${stem}
      COMMAND /usr/bin/python3 -B -m pytest -q -p no:cacheprovider --rootdir=${PROJECT_SOURCE_DIR}/test ${test}
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    set_tests_properties(${label}/${stem} PROPERTIES LABELS ${label} TIMEOUT ${limit}
      ENVIRONMENT "BELLHOP_BIN=$<TARGET_FILE:bellhop>;BELLHOP_TEST_TIME_FACTOR=${time_factor};${arg_UNPARSED_ARGUMENTS}")
  endforeach()
endfunction()
