// One message's line for taps, and the route that it is published on.
#pragma once

#include <string>

namespace bellhop {

struct TapLine {
  std::string route, text;
};

}  // namespace bellhop
