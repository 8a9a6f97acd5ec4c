// The commit that this program was built from. The build writes the other half (daemon/commit.cmake), into
// the program itself: only that is linked again when the commit is another.
#pragma once

#include <string_view>

namespace bellhop {

// `3ad79c949390`, with `-dirty` behind it when files had changes; or `unknown`.
std::string_view commit();

}  // namespace bellhop
