// The host's users and groups: what a configured name means, and what a number is called. Blocking calls that
// may ask the network (NSS). Any thread.
#pragma once

#include <grp.h>
#include <sys/types.h>

#include <string>

#include "proto/result.h"

namespace bellhop {

using GroupByName = int (*)(const char* name, group* entry, char* space, size_t bytes, group** found);

// The id of a group that is configured by its name or its number. A name comes first, as with chown: a group
// may be called "100". Error: this host has no such group, and `text` is no number; or the host cannot say.
// `by_name` is getgrnam_r, or a test's.
Result<gid_t> group_id(const std::string& text, GroupByName by_name = &::getgrnam_r);

// "unknown" where the number has no name.
std::string user_name(uid_t uid);
std::string group_name(gid_t gid);

}  // namespace bellhop
