// YAML text to Config. Exceptions of yaml-cpp stop here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace bellhop::config {

struct Loaded {
  Config config;  // meaningful when errors is empty
  std::vector<std::string>
      errors;  // `file:line:column: key: what is wrong, what is allowed`, in the file's order
  std::vector<std::string> warnings;  // likewise: what is allowed and hardly meant
};

Loaded load_file(const std::string& path);
// `name` stands in the errors as the file.
Loaded load_text(std::string_view yaml, const std::string& name);

}  // namespace bellhop::config
