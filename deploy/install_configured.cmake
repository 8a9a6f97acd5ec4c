# Run by `cmake --install`, for what names the prefix: the units, and the configuration to begin with.
#
# Below /usr and /usr/local the configuration is /etc/bellhop/bellhop.yaml, elsewhere PREFIX/etc/bellhop/bellhop.yaml. One that is
# there is the operator's, and stays. `source`, `configured` (a folder for files) and `bindir` are set by CMakeLists.txt.
set(prefix "${CMAKE_INSTALL_PREFIX}")  # empty for `--prefix /`
if(prefix)
  get_filename_component(prefix "${prefix}" ABSOLUTE BASE_DIR "$ENV{PWD}")
endif()
if(prefix MATCHES "[ \t\"'%$\\\\]")
  message(FATAL_ERROR "The prefix ${prefix} has a character that a unit of systemd reads otherwise. Use a path without blanks, quotes, % and $.")
endif()
if(prefix MATCHES "^/usr(/local)?$")
  set(etc /etc)
else()
  set(etc ${prefix}/etc)
endif()
cmake_path(ABSOLUTE_PATH bindir BASE_DIRECTORY "${prefix}/")

foreach(unit bellhop.service bellhop.socket)
  file(READ ${source}/systemd/${unit} text)
  string(REPLACE /usr/bin/bellhop ${bindir}/bellhop text "${text}")
  string(REPLACE /etc/bellhop/ ${etc}/bellhop/ text "${text}")
  file(WRITE ${configured}/${unit} "${text}")
  file(INSTALL ${configured}/${unit} DESTINATION ${prefix}/lib/systemd/system)
endforeach()

if(NOT EXISTS $ENV{DESTDIR}${etc}/bellhop/bellhop.yaml)
  # It will hold the broker's password.
  file(INSTALL ${source}/bellhop.yaml DESTINATION ${etc}/bellhop PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
endif()
