#include "daemon/ops/assert.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "daemon/ops/log.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

constexpr std::chrono::seconds last_line_wait{1};

// `file` as it is called in the repository: this file tells where that begins.
std::string_view in_repository(std::string_view file) {
  constexpr std::string_view here = __FILE__;
  constexpr std::string_view root =
      here.substr(0, here.size() - std::string_view("daemon/ops/assert.cpp").size());
  if (file.starts_with(root)) file.remove_prefix(root.size());
  return file;
}

}  // namespace

void die(const std::string& text) {
  log_error(text);
  spdlog::default_logger()->flush();
  finish_log(last_line_wait);
  std::abort();
}

void assertion_failed(const char* file, int line, const char* what) {
  die(fmt::format("bellhop ends, its own state is wrong: {}:{}: does not hold: {}", in_repository(file), line,
                  what));
}

}  // namespace bellhop
