// Turns YAML text into a Config. Exceptions of yaml-cpp stop here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

struct Loaded {
  Config config;  // meaningful when errors is empty
  // `file:line:column: key: what is wrong, what is allowed`, in the file's order.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;  // likewise: what is allowed, but hardly meant
  // All errors are about files that are not there or cannot be read. A restart may help.
  bool lacks_only_files = false;
  // The files that were read, or should have been: the configuration, its ${file:...} and PEM files.
  std::vector<std::string> files;
};

Loaded load_file(const std::string& path);
// Errors name the file as `name`.
Loaded load_text(std::string_view yaml, const std::string& name);

}  // namespace bellhop::config
