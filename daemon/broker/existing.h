// Asks a broker how a queue or an exchange differs from its declaration.
#pragma once

#include <string>
#include <vector>

#include "daemon/broker/control_connection.h"
#include "daemon/broker/inequivalence.h"

namespace bellhop {

struct Existing {
  std::vector<Difference> differences;  // empty: the refusal is about something else
  bool is_complete = false;             // false: there may be more that the broker did not name
  bool is_lost = false;                 // the connection ended meanwhile
};

// Blocking. The broker refused `item` with 406 and the text `refusal`. Nothing at the broker changes: each
// further declaration either differs, or says what is there already.
Existing differences_of(ControlConnection& connection, const Declaration& item, const std::string& refusal);

}  // namespace bellhop
