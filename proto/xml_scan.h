// Reads the few elements that bellhop needs from an S3 service's XML: error answers and the list of
// unfinished uploads. It is a tolerant scan for elements by local name, not a parser: no DTD, no entities but
// XML's five and numeric ones. Nothing that a service sends makes it fail. An element must not stand inside
// one of the same name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bellhop::proto {

// The undecoded contents of each whole element of that name, at any depth.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);

// The text of the first element of that name, decoded and trimmed; nothing when there is none.
std::optional<std::string> xml_text(std::string_view xml, std::string_view name);

}  // namespace bellhop::proto
