// libmicrohttpd, loaded when somebody first connects to an admin listener and not linked: with GnuTLS, which
// it brings, it is several MiB of memory that a bellhop which nobody watches does without.
#pragma once

#include <sys/socket.h>

#include <microhttpd.h>

#include "proto/result.h"

namespace bellhop {

// The functions in use, under their names without `MHD_`.
struct MicrohttpdLibrary {
  static constexpr const char* file = "libmicrohttpd.so.12";

  decltype(&MHD_start_daemon) start_daemon;
  decltype(&MHD_stop_daemon) stop_daemon;
  decltype(&MHD_add_connection) add_connection;
  decltype(&MHD_get_connection_info) get_connection_info;
  decltype(&MHD_lookup_connection_value_n) lookup_connection_value_n;
  decltype(&MHD_create_response_from_buffer) create_response_from_buffer;
  decltype(&MHD_create_response_from_callback) create_response_from_callback;
  decltype(&MHD_suspend_connection) suspend_connection;
  decltype(&MHD_resume_connection) resume_connection;
  decltype(&::MHD_set_connection_option) set_connection_option;
  decltype(&MHD_add_response_header) add_response_header;
  decltype(&MHD_queue_response) queue_response;
  decltype(&MHD_destroy_response) destroy_response;

  // Any thread; loads at the first call. It stays for the process's life.
  static Result<const MicrohttpdLibrary*> load();
};

}  // namespace bellhop
