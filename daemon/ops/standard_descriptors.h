// Descriptors 0, 1 and 2 as everybody expects them: open. A process that is started without them would get
// its own sockets and pipes under these numbers, and write its log into one of them.
#pragma once

namespace bellhop {

// Once, before anything else opens a descriptor. Opens /dev/null where one is closed. False: it could not.
bool open_standard_descriptors();

}  // namespace bellhop
