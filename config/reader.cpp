#include "config/reader.h"

#include <algorithm>

#include "config/expand.h"
#include "config/units.h"
#include "proto/utf8.h"

namespace bellhop::config {

namespace {

std::string kind_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "is empty";
    case YamlNode::Kind::scalar:
      return "is a single value";
    case YamlNode::Kind::sequence:
      return "is a list";
    case YamlNode::Kind::mapping:
      return "is a mapping";
  }
  return "";
}

// Numbers too far away to mean a bound are not worth showing.
std::string range(uint64_t least, uint64_t most, uint64_t unbounded, std::string (*show)(uint64_t)) {
  return most == unbounded ? "at least " + show(least) : show(least) + " to " + show(most);
}
std::string show_integer(uint64_t value) {
  return std::to_string(value);
}

std::string join(const std::string& path, const std::string& key) {
  return path.empty() ? shown_key(key) : path + "." + shown_key(key);
}

}  // namespace

void Value::error(std::string text) const {
  problems_->add(place_, path_.empty() ? "file" : path_, std::move(text));
}

void Value::error_outside(std::string text) const {
  problems_->add_outside(place_, path_.empty() ? "file" : path_, std::move(text));
}

void Value::error_with_value(const std::string& text) const {
  const bool expands = node_->text.find("${") != std::string::npos;
  error(quoted(node_->text) + (expands ? " once expanded " : " ") + text);
}

void Value::warning(std::string text) const {
  problems_->warn(place_, path_.empty() ? "file" : path_, std::move(text));
}

std::optional<std::string> Value::text() const {
  auto text = expanded();
  if (text && proto::find_invalid_utf8(*text) != std::string::npos) {
    error("has bytes in it that are no UTF-8 once expanded, allowed: text in UTF-8");
    return {};
  }
  return text;
}

std::optional<std::string> Value::secret() const {
  auto text = expanded();
  if (text && !written_in_file(node_->text).empty()) problems_->note_secret(place_, path_);
  return text;
}

std::optional<std::string> Value::expanded() const {
  if (!is_scalar()) {
    error(kind_of(*node_) + ", allowed: text");
    return {};
  }
  for (const std::string& path : files_in(node_->text)) problems_->note_file(path);
  bool lacks_file = false;
  Result<std::string> expanded = expand(node_->text, &lacks_file);
  if (!expanded) {
    lacks_file ? error_outside(expanded.error()) : error(expanded.error());
    return {};
  }
  if (expanded.value().find('\0') != std::string::npos) {
    error("has a NUL byte in it, allowed: text");
    return {};
  }
  return std::move(expanded.value());
}

std::optional<bool> Value::boolean() const {
  const auto text = this->text();
  if (!text) return {};
  if (*text == "true") return true;
  if (*text == "false") return false;
  error_with_value("is neither, allowed: true, false");
  return {};
}

std::optional<uint64_t> Value::integer(uint64_t least, uint64_t most) const {
  const auto text = this->text();
  if (!text) return {};
  const Result<uint64_t> number = parse_integer(*text);
  if (number && number.value() >= least && number.value() <= most) return number.value();
  error_with_value(std::string(number ? "is out of range" : "is not a whole number") +
                   ", allowed: " + range(least, most, std::numeric_limits<uint64_t>::max(), show_integer));
  return {};
}

std::optional<uint64_t> Value::bytes(uint64_t least, uint64_t most) const {
  const auto text = this->text();
  if (!text) return {};
  const Result<uint64_t> size = parse_bytes(*text);
  if (!size) {
    error_with_value(size.error());
    return {};
  }
  if (size.value() >= least && size.value() <= most) return size.value();
  error_with_value("is out of range, allowed: " +
                   range(least, most, std::numeric_limits<uint64_t>::max(), show_bytes));
  return {};
}

std::optional<uint64_t> Value::time_ms(uint64_t least, uint64_t most) const {
  const auto text = this->text();
  if (!text) return {};
  const Result<uint64_t> time = parse_time_ms(*text);
  if (!time) {
    error_with_value(time.error());
    return {};
  }
  if (time.value() >= least && time.value() <= most) return time.value();
  error_with_value("is out of range, allowed: " + show_time(least) + " to " + show_time(most));
  return {};
}

std::optional<uint32_t> Value::mode() const {
  const auto text = this->text();
  if (!text) return {};
  const Result<uint32_t> mode = parse_mode(*text);
  if (mode) return mode.value();
  error_with_value(mode.error());
  return {};
}

std::optional<std::vector<Value>> Value::sequence(const std::string& of) const {
  if (!is_sequence()) {
    error(kind_of(*node_) + ", allowed: a list of " + of);
    return {};
  }
  std::vector<Value> out;
  for (size_t i = 0; i < node_->items.size(); ++i) {
    const YamlNode& item = node_->items[i];
    out.emplace_back(item, item.place, path_ + "[" + std::to_string(i) + "]", *problems_);
  }
  return out;
}

std::optional<std::vector<std::pair<std::string, Value>>> Value::named(const std::string& of) const {
  if (!is_mapping()) {
    error(kind_of(*node_) + ", allowed: a mapping of " + of);
    return {};
  }
  std::vector<std::pair<std::string, Value>> out;
  std::set<std::string> seen;
  for (const YamlEntry& entry : node_->entries) {
    const std::string path = join(path_, entry.key);
    if (!seen.insert(entry.key).second) {
      problems_->add(entry.place, path, "is there twice, allowed: once");
      continue;
    }
    const Place place = entry.value.kind == YamlNode::Kind::null ? entry.place : entry.value.place;
    out.emplace_back(entry.key, Value(entry.value, place, path, *problems_));
  }
  return out;
}

Section::Section(const Value& value) : value_(value), ok_(value.is_mapping()) {
  if (!ok_) value.error(kind_of(value.node()) + ", allowed: a mapping");
}

std::string Section::path_of(const std::string& key) const {
  return join(value_.path(), key);
}

std::optional<Value> Section::find(const std::string& key) {
  known(key);
  for (const YamlEntry& entry : value_.node().entries) {
    if (entry.key != key) continue;
    const Place place = entry.value.kind == YamlNode::Kind::null ? entry.place : entry.value.place;
    return Value(entry.value, place, path_of(key), value_.problems());
  }
  return {};
}

void Section::known(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
}

void Section::missing(const std::string& key, const std::string& text) const {
  value_.problems().add(value_.place(), path_of(key), text);
}

void Section::finish() const {
  std::set<std::string> seen;
  for (const YamlEntry& entry : value_.node().entries) {
    if (!seen.insert(entry.key).second) {
      value_.problems().add(entry.place, path_of(entry.key), "is there twice, allowed: once");
      continue;
    }
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    const std::string near = nearest(entry.key, known_);
    value_.problems().add(entry.place, path_of(entry.key),
                          "unknown key" + (near.empty() ? "" : " (did you mean " + near + "?)") +
                              ", allowed: " + listed(known_));
  }
}

void Section::read(const std::string& key, std::string& out) {
  if (const auto value = find(key))
    if (auto text = value->text()) out = std::move(*text);
}

void Section::read_secret(const std::string& key, std::string& out) {
  if (const auto value = find(key))
    if (auto text = value->secret()) out = std::move(*text);
}

void Section::read(const std::string& key, bool& out) {
  if (const auto value = find(key))
    if (const auto boolean = value->boolean()) out = *boolean;
}

// 49 days is what 32 bits hold.
constexpr uint64_t time_ms_max = 49u * 86400000u;

void Section::read_time_ms(const std::string& key, uint32_t& out, uint32_t least) {
  if (const auto value = find(key))
    if (const auto time = value->time_ms(least, time_ms_max)) out = static_cast<uint32_t>(*time);
}

void Section::read_bytes(const std::string& key, uint64_t& out, uint64_t least) {
  if (const auto value = find(key))
    if (const auto size = value->bytes(least)) out = *size;
}

std::optional<size_t> Section::choose(const Value& value, const std::vector<std::string>& names) {
  const auto text = value.text();
  if (!text) return {};
  const auto found = std::find(names.begin(), names.end(), *text);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  value.error_with_value("is not known, allowed: " + listed(names));
  return {};
}

}  // namespace bellhop::config
