// What is wrong with a bad file, line by line as an operator reads it.
#pragma once

#include <string>
#include <vector>

#include "config/load.h"

namespace bellhop::config {

using Lines = std::vector<std::string>;

inline Lines errors_of(const std::string& yaml) {
  return load_text(yaml, "f").errors;
}

// Behind a good first line.
inline Lines errors_after_broker(const std::string& yaml) {
  return errors_of("broker: { url: amqp://localhost }\n" + yaml);
}

}  // namespace bellhop::config
