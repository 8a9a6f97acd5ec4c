#include "daemon/admin/microhttpd_library.h"

#include <dlfcn.h>

#include <string>

namespace bellhop {

namespace {

struct Loaded {
  MicrohttpdLibrary library{};
  std::string error;
};

template <typename Function>
void find(void* handle, const char* name, Function& out, std::string& error) {
  out = reinterpret_cast<Function>(dlsym(handle, name));
  if (out == nullptr && error.empty()) error = std::string("it has no function ") + name;
}

Loaded load_once() {
  Loaded out;
  void* const handle = dlopen(MicrohttpdLibrary::file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    out.error = dlerror();
    return out;
  }
  MicrohttpdLibrary& http = out.library;
  find(handle, "MHD_start_daemon", http.start_daemon, out.error);
  find(handle, "MHD_stop_daemon", http.stop_daemon, out.error);
  find(handle, "MHD_add_connection", http.add_connection, out.error);
  find(handle, "MHD_get_connection_info", http.get_connection_info, out.error);
  find(handle, "MHD_lookup_connection_value_n", http.lookup_connection_value_n, out.error);
  find(handle, "MHD_create_response_from_buffer", http.create_response_from_buffer, out.error);
  find(handle, "MHD_create_response_from_callback", http.create_response_from_callback, out.error);
  find(handle, "MHD_suspend_connection", http.suspend_connection, out.error);
  find(handle, "MHD_resume_connection", http.resume_connection, out.error);
  find(handle, "MHD_set_connection_option", http.set_connection_option, out.error);
  find(handle, "MHD_add_response_header", http.add_response_header, out.error);
  find(handle, "MHD_queue_response", http.queue_response, out.error);
  find(handle, "MHD_destroy_response", http.destroy_response, out.error);
  return out;
}

}  // namespace

Result<const MicrohttpdLibrary*> MicrohttpdLibrary::load() {
  static const Loaded loaded = load_once();
  if (!loaded.error.empty()) return Error{"admin needs libmicrohttpd 12: " + loaded.error};
  return &loaded.library;
}

}  // namespace bellhop
