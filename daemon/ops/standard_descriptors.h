// Keeps descriptors 0, 1 and 2 open, as everybody expects them. A process that starts without them would get
// its own sockets and pipes under these numbers, and write its log into one of them.
#pragma once

namespace bellhop {

// Call it once, before anything else opens a descriptor. Opens /dev/null where one is closed. False: that
// failed.
bool open_standard_descriptors();

}  // namespace bellhop
