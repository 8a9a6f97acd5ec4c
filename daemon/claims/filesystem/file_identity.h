// Tells whether an open file still holds the bytes that were read from it.
#pragma once

#include <sys/stat.h>

namespace bellhop {

// Blocking. Looks at an open file before its bytes are read, so that is_same_file() sees any later write.
// Returns 0 or an errno.
int identify(int fd, struct stat& status);

// Whether nobody wrote to the file between the two looks. Taking its name away (retention does) is no write,
// though it changes the ctime.
bool is_same_file(const struct stat& before, const struct stat& now);

}  // namespace bellhop
