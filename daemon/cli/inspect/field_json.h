// Header fields as JSON, for a person or a program that looks at a message.
#pragma once

#include <nlohmann/json.hpp>

#include "proto/bytes.h"
#include "proto/table.h"

namespace bellhop {

// Strings as they are (what is no UTF-8 as "hex:..."), byte arrays as "hex:...", timestamps as
// 2026-12-01T03:00:00Z, decimals as text, nested arrays and tables as such.
nlohmann::ordered_json json_of_field(const proto::Field& field);
// Of a name that is there twice the first one counts, as for the broker.
nlohmann::ordered_json json_of_table(Bytes fields);
// A text that may be anything, as json_of_field shows a string.
std::string json_text(std::string_view text);

}  // namespace bellhop
