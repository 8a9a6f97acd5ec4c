// The page at `/`: page.html, which the build puts into the program.
#pragma once

#include <string_view>

namespace bellhop {

std::string_view page();

}  // namespace bellhop
