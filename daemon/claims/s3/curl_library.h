// Loads libcurl when the first S3 store is opened; bellhop is not linked to it. With its own libraries it
// takes several MiB of memory, which a bellhop without S3 does without.
#pragma once

#include <curl/curl.h>

#include "proto/result.h"

namespace bellhop {

// The functions that bellhop uses, under their names without `curl_`.
struct CurlLibrary {
  static constexpr const char* file = "libcurl.so.4";

  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_pause) easy_pause;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
  decltype(&curl_multi_init) multi_init;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&curl_multi_add_handle) multi_add_handle;
  decltype(&curl_multi_remove_handle) multi_remove_handle;
  decltype(&curl_multi_assign) multi_assign;
  decltype(&curl_multi_socket_action) multi_socket_action;
  decltype(&curl_multi_info_read) multi_info_read;
  decltype(&curl_multi_cleanup) multi_cleanup;

  // Any thread. The first call loads and initialises libcurl, which then stays for the process's life. Error:
  // it cannot be loaded, in the linker's words.
  static Result<const CurlLibrary*> load();
};

}  // namespace bellhop
