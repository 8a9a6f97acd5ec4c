# Run by `cmake --install`, for what names the prefix: the units, and the configuration to begin with.
#
# Below /usr and /usr/local the configuration is /etc/bellhop/bellhop.yaml, elsewhere PREFIX/etc/bellhop/bellhop.yaml. One that is
# there is the operator's, and stays. `source`, `configured` (a folder for files) and `bindir` are set by CMakeLists.txt.
if(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
  set(etc /etc)
else()
  set(etc ${CMAKE_INSTALL_PREFIX}/etc)
endif()
cmake_path(ABSOLUTE_PATH bindir BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})

foreach(unit bellhop.service bellhop.socket)
  file(READ ${source}/systemd/${unit} text)
  string(REPLACE /usr/bin/bellhop ${bindir}/bellhop text "${text}")
  string(REPLACE /etc/bellhop/ ${etc}/bellhop/ text "${text}")
  file(WRITE ${configured}/${unit} "${text}")
  file(INSTALL ${configured}/${unit} DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
endforeach()

if(NOT EXISTS $ENV{DESTDIR}${etc}/bellhop/bellhop.yaml)
  # It will hold the broker's password.
  file(INSTALL ${source}/bellhop.yaml DESTINATION ${etc}/bellhop PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
endif()
