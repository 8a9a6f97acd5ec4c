// Walks a YamlNode tree while a section is loaded. It knows each value's key path and place, turns it into a
// plain type, and reports what is wrong. A read that fails reports once and leaves its target as it was, so
// that loading goes on.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/problems.h"
#include "config/yaml_tree.h"

namespace bellhop::config {

// One value of the file. Borrows the tree and the problems.
class Value {
 public:
  Value(const YamlNode& node, Place place, std::string path, Problems& problems)
      : node_(&node), place_(place), path_(std::move(path)), problems_(&problems) {}

  const std::string& path() const { return path_; }
  bool is_mapping() const { return node_->kind == YamlNode::Kind::mapping; }
  bool is_sequence() const { return node_->kind == YamlNode::Kind::sequence; }
  bool is_scalar() const { return node_->kind == YamlNode::Kind::scalar; }

  // Reports `text` at this value, or at its key when the value is empty.
  void error(std::string text) const;
  // Likewise, of a file that the value names and that is not there.
  void error_outside(std::string text) const;
  // Reports "'<value as written>' <text>", with ${...} unexpanded. Only for values that are no secrets.
  void error_with_value(const std::string& text) const;

  // Reports what an operator should know, and may want as it is.
  void warning(std::string text) const;

  // Each reports a value of another kind, and returns nothing for it.
  std::optional<std::string> text() const;  // expanded; UTF-8 without NUL bytes
  // Expanded; any bytes but NUL. Remembers whether the secret stands in the file itself.
  std::optional<std::string> secret() const;
  std::optional<bool> boolean() const;
  std::optional<uint64_t> integer(uint64_t least, uint64_t most) const;
  std::optional<uint64_t> bytes(uint64_t least, uint64_t most = std::numeric_limits<uint64_t>::max()) const;
  std::optional<uint64_t> time_ms(uint64_t least, uint64_t most) const;
  std::optional<uint32_t> mode() const;
  // `of` says what the entries are, for the error.
  std::optional<std::vector<Value>> sequence(const std::string& of) const;
  // A mapping whose keys are names that the operator chose. Reports keys that are there twice, and leaves
  // them out.
  std::optional<std::vector<std::pair<std::string, Value>>> named(const std::string& of) const;

  const YamlNode& node() const { return *node_; }
  Place place() const { return place_; }
  Problems& problems() const { return *problems_; }

 private:
  std::optional<std::string> expanded() const;
  const YamlNode* node_;
  Place place_;  // the value's; its key's when it has none
  std::string path_;
  Problems* problems_;
};

// A mapping with a fixed set of keys. Asking for a key makes it known; finish() reports the others.
class Section {
 public:
  explicit Section(const Value& value);  // reports another kind than a mapping
  bool ok() const { return ok_; }

  // The key's value, nothing when the file does not have it.
  std::optional<Value> find(const std::string& key);
  // Makes a key known without reading it.
  void known(const std::string& key);
  // Reports `text` for a key that the file does not have, at the section's place.
  void missing(const std::string& key, const std::string& text) const;
  void finish() const;

  void read(const std::string& key, std::string& out);
  void read_secret(const std::string& key, std::string& out);
  void read(const std::string& key, bool& out);
  template <typename T>
  void read_integer(const std::string& key, T& out, uint64_t least, uint64_t most) {
    if (const auto value = find(key))
      if (const auto number = value->integer(least, most)) out = static_cast<T>(*number);
  }
  void read_time_ms(const std::string& key, uint32_t& out, uint32_t least);
  void read_bytes(const std::string& key, uint64_t& out, uint64_t least);
  template <typename T>
  void read_choice(const std::string& key, T& out, const std::vector<std::pair<std::string, T>>& choices) {
    const auto value = find(key);
    if (!value) return;
    std::vector<std::string> names;
    names.reserve(choices.size());
    for (const auto& choice : choices) names.push_back(choice.first);
    if (const auto chosen = choose(*value, names)) out = choices[*chosen].second;
  }

 private:
  static std::optional<size_t> choose(const Value& value, const std::vector<std::string>& names);
  std::string path_of(const std::string& key) const;

  Value value_;
  bool ok_;
  std::vector<std::string> known_;
};

}  // namespace bellhop::config
