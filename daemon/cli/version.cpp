#include "daemon/cli/version.h"

#include <amqp.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <spdlog/version.h>
#include <uv.h>
#include <xxhash.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "daemon/admin/microhttpd_library.h"
#include "daemon/claims/s3/curl_library.h"

namespace bellhop {

namespace {

std::string compiler() {
#ifdef __clang__
  return std::string("Clang ") + __clang_version__;
#else
  return std::string("GCC ") + __VERSION__;
#endif
}

std::string xxhash_version() {
  const unsigned number = XXH_versionNumber();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::string linked_libraries() {
  return fmt::format(
      "rabbitmq-c {}, OpenSSL {}, libuv {}, spdlog {}.{}.{}, yaml-cpp {}, xxHash {}, nlohmann-json {}.{}.{}, "
      "prometheus-cpp {}, CLI11 {}",
      amqp_version(), OpenSSL_version(OPENSSL_VERSION_STRING), uv_version_string(), SPDLOG_VER_MAJOR,
      SPDLOG_VER_MINOR, SPDLOG_VER_PATCH, BELLHOP_YAML_CPP_VERSION, xxhash_version(),
      NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
      BELLHOP_PROMETHEUS_CPP_VERSION, CLI11_VERSION);
}

// `function` returns the version, perhaps as `libcurl/7.88.1 OpenSSL/3.0.17 ...`.
std::string late_library(const char* name, const char* file, const char* function, const char* needed_by) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fmt::format("{} is not installed ({} need it)", name, needed_by);
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, function));
  std::string text = version == nullptr ? "of an unknown version" : version();
  if (const size_t slash = text.find('/'); slash != std::string::npos)
    text = text.substr(slash + 1, text.find(' ') - slash - 1);
  return fmt::format("{} {}", name, text);
}

}  // namespace

std::string version_text(std::string_view commit) {
  return fmt::format(
      "bellhop {}\n"
      "commit: {}\n"
      "compiler: {}\n"
      "libraries: {}\n"
      "loaded when needed: {}, {}",
      BELLHOP_VERSION, commit, compiler(), linked_libraries(),
      late_library("libcurl", CurlLibrary::file, "curl_version", "S3 stores"),
      late_library("libmicrohttpd", MicrohttpdLibrary::file, "MHD_get_version", "the admin listeners"));
}

}  // namespace bellhop
