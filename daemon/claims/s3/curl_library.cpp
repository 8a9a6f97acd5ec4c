#include "daemon/claims/s3/curl_library.h"

#include <dlfcn.h>

#include <string>

namespace bellhop {

namespace {

struct Loader {
  void* handle = nullptr;
  std::string error;

  void open(const char* name) {
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr && error.empty()) error = dlerror();
  }
  template <typename Function>
  void find(const char* name, Function& out) {
    out = handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, name));
    if (out == nullptr && error.empty()) error = std::string("it has no function ") + name;
  }
};

struct Loaded {
  CurlLibrary library{};
  std::string error;
};

Loaded load_once() {
  Loaded out;
  CurlLibrary& curl = out.library;
  Loader loader;
  loader.open(CurlLibrary::file);
  loader.find("curl_global_init", curl.global_init);
  loader.find("curl_easy_init", curl.easy_init);
  loader.find("curl_easy_setopt", curl.easy_setopt);
  loader.find("curl_easy_getinfo", curl.easy_getinfo);
  loader.find("curl_easy_perform", curl.easy_perform);
  loader.find("curl_easy_pause", curl.easy_pause);
  loader.find("curl_easy_cleanup", curl.easy_cleanup);
  loader.find("curl_easy_strerror", curl.easy_strerror);
  loader.find("curl_slist_append", curl.slist_append);
  loader.find("curl_slist_free_all", curl.slist_free_all);
  loader.find("curl_multi_init", curl.multi_init);
  loader.find("curl_multi_setopt", curl.multi_setopt);
  loader.find("curl_multi_add_handle", curl.multi_add_handle);
  loader.find("curl_multi_remove_handle", curl.multi_remove_handle);
  loader.find("curl_multi_assign", curl.multi_assign);
  loader.find("curl_multi_socket_action", curl.multi_socket_action);
  loader.find("curl_multi_info_read", curl.multi_info_read);
  loader.find("curl_multi_cleanup", curl.multi_cleanup);
  if (loader.error.empty() && curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    loader.error = "it cannot be initialised";
  out.error = std::move(loader.error);
  return out;
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::load() {
  static const Loaded loaded = load_once();
  if (!loaded.error.empty()) return Error{"libcurl 4 cannot be used: " + loaded.error};
  return &loaded.library;
}

}  // namespace bellhop
