// Objects that no message names and that a store could not remove. Retention finds them; a store without it
// keeps them.
#pragma once

#include <string>

#include "daemon/ops/trouble.h"

namespace bellhop {

// A store that removes nothing is one trouble, however many objects stay.
inline void tell_left_behind(const std::string& store, const std::string& key, const std::string& reason) {
  tell_trouble("claim stays", store, "claim stays in its store, no message names it",
               {{"store", store}, {"key", key}, {"reason", reason}});
}

}  // namespace bellhop
