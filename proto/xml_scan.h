// The few elements that bellhop reads out of an S3 service's XML: error answers and the list of unfinished
// uploads. A tolerant scan for elements by local name, not a parser: no DTD, no entities but XML's five and
// numeric ones, and nothing that a service sends makes it fail. An element must not stand inside of one of
// the same name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bellhop::proto {

// What stands inside of each whole element of that name, at any depth, undecoded.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);

// The text of the first element of that name, decoded and trimmed; nothing when there is none.
std::optional<std::string> xml_text(std::string_view xml, std::string_view name);

}  // namespace bellhop::proto
