// What an errno means, in words.
#pragma once

#include <string>
#include <system_error>

namespace bellhop {

// "No space left on device" for ENOSPC. Any thread.
inline std::string errno_text(int error) {
  return std::generic_category().message(error);
}

}  // namespace bellhop
