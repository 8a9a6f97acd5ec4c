// Reads YAML text as a tree of plain values with places. It is the only file that uses yaml-cpp; its
// exceptions stop here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problems.h"

namespace bellhop::config {

struct YamlEntry;

struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  Place place;
  std::string text;                // scalar, as written but for quotes
  std::vector<YamlNode> items;     // sequence
  std::vector<YamlEntry> entries;  // mapping, in the file's order; a duplicate key is there twice
};

struct YamlEntry {
  std::string key;
  Place place;
  YamlNode value;
};

// False, with the reason added to `problems`, for text that is not one YAML document with scalar keys. An
// empty document is an empty mapping.
bool parse_yaml(std::string_view text, YamlNode& root, Problems& problems);

}  // namespace bellhop::config
