// Asks a broker in how many ways a queue or an exchange differs from its declaration.
#pragma once

#include <string>
#include <vector>

#include "daemon/broker/control_connection.h"
#include "daemon/broker/inequivalence.h"

namespace bellhop {

struct Existing {
  std::vector<Difference> differences;  // empty: what is there is no matter of differences
  bool is_complete = false;             // false: there may be more that the broker did not name
  bool is_lost = false;                 // the connection ended meanwhile
};

// `item` was refused with 406 and `refusal`. What is there stays as it is: each further declaration differs,
// or is what is there already.
Existing differences_of(ControlConnection& connection, const Declaration& item, const std::string& refusal);

}  // namespace bellhop
