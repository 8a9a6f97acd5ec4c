#include "daemon/broker/inequivalence.h"

#include <algorithm>
#include <charconv>

#include "config/problems.h"

namespace bellhop {
namespace {

constexpr std::string_view before_name = "inequivalent arg '";
constexpr std::string_view before_current = " but current is ";
constexpr std::string_view before_value = "the value '";
constexpr std::string_view before_type = "' of type '";
constexpr const char* dead_letter_exchange = "x-dead-letter-exchange";
constexpr const char* dead_letter_key = "x-dead-letter-routing-key";

bool is_dead_letter(const Difference& difference) {
  return difference.what == dead_letter_exchange || difference.what == dead_letter_key;
}

template <typename Number>
std::optional<ArgumentValue> number_of(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end) return {};
  return ArgumentValue{value};
}

std::optional<ArgumentValue> value_of(const Difference& difference) {
  if (difference.type.empty() || difference.type == "longstr") return ArgumentValue{difference.current};
  if (difference.type == "signedint") return number_of<int32_t>(difference.current);
  if (difference.type == "long") return number_of<int64_t>(difference.current);
  if (difference.type == "bool") return ArgumentValue{difference.current == "true"};
  return {};
}

std::string shown(const ArgumentValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return config::quoted(*text);
  if (const auto* number = std::get_if<int32_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  return std::get<bool>(value) ? "true" : "false";
}

std::string wanted_value(const std::string& what, const Declaration& wanted) {
  if (what == "durable") return wanted.durable ? "true" : "false";
  if (what == "auto_delete") return wanted.auto_delete ? "true" : "false";
  if (what == "internal") return wanted.internal ? "true" : "false";
  if (what == "type") return config::quoted(wanted.type);
  const ArgumentValue* const value = wanted.argument(what);
  return value == nullptr ? "none" : shown(*value);
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

// Queue names may have any of the characters that mean something in a pattern.
std::string pattern_of(const std::string& name) {
  std::string out = "^";
  for (const char c : name) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out + "$";
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::optional<Difference> parse_difference(std::string_view reply_text) {
  const size_t begin = reply_text.find(before_name);
  if (begin == std::string_view::npos) return {};
  std::string_view rest = reply_text.substr(begin + before_name.size());
  const size_t end = rest.find("' for ");
  if (end == std::string_view::npos) return {};
  Difference out;
  out.what = rest.substr(0, end);
  const size_t current = rest.rfind(before_current);
  if (current == std::string_view::npos) return out;
  rest.remove_prefix(current + before_current.size());
  if (rest == "none") {
    out.is_none = out.is_known = true;
    return out;
  }
  if (!rest.ends_with('\'') || rest.size() < 2) return out;
  rest.remove_suffix(1);
  if (rest.starts_with(before_value)) {
    rest.remove_prefix(before_value.size());
    const size_t type = rest.rfind(before_type);
    if (type == std::string_view::npos) return out;
    out.type = rest.substr(type + before_type.size());
    out.current = rest.substr(0, type);
  } else {
    if (!rest.starts_with('\'')) return out;
    out.current = rest.substr(1);
  }
  out.is_known = true;
  return out;
}

bool take_over(Declaration& item, const Difference& difference) {
  if (!difference.is_known) return false;
  if (difference.what == "exclusive") return false;  // of another connection, and none of ours
  if (difference.what == "durable") {
    item.durable = difference.current == "true";
  } else if (difference.what == "auto_delete") {
    item.auto_delete = difference.current == "true";
  } else if (difference.what == "internal") {
    item.internal = difference.current == "true";
  } else if (difference.what == "type") {
    item.type = difference.current;
  } else {
    std::erase_if(item.arguments, [&](const auto& each) { return each.first == difference.what; });
    if (difference.is_none) return true;
    auto value = value_of(difference);
    if (!value) return false;
    item.arguments.emplace_back(difference.what, std::move(*value));
  }
  return true;
}

std::string describe(const std::vector<Difference>& differences, const Declaration& wanted) {
  std::string out;
  for (const Difference& each : differences) {
    if (!out.empty()) out += ", ";
    if (each.is_none) {
      out += "no " + each.what;
    } else {
      out += each.what + " " + (each.is_known ? config::quoted(each.current) : "of another value");
    }
    out += " (bellhop declares " + wanted_value(each.what, wanted) + ")";
  }
  return out;
}

namespace {

// Rejected messages may be dropped.
bool lacks_dead_lettering(const std::vector<Difference>& differences, const Declaration& wanted) {
  return wanted.argument(dead_letter_exchange) != nullptr &&
         std::any_of(differences.begin(), differences.end(), is_dead_letter);
}

// The queue is as `dead_letter: true` declares it, and the pipeline says false.
bool only_has_dead_lettering(const std::vector<Difference>& differences, const Declaration& wanted) {
  const auto theirs = dead_letter_arguments(wanted.name);
  return wanted.argument(dead_letter_exchange) == nullptr && differences.size() == theirs.size() &&
         std::all_of(differences.begin(), differences.end(), [&theirs](const Difference& each) {
           return each.is_known && std::any_of(theirs.begin(), theirs.end(), [&each](const auto& argument) {
                    return argument.first == each.what && argument.second == ArgumentValue{each.current};
                  });
         });
}

}  // namespace

std::string dead_letter_policy(const std::vector<Difference>& differences, const Declaration& wanted,
                               const std::string& vhost) {
  if (!lacks_dead_lettering(differences, wanted)) return "";
  std::string definition;
  for (const Difference& each : differences) {
    if (!is_dead_letter(each)) continue;
    if (!each.is_none) return "";
    const ArgumentValue* const value = wanted.argument(each.what);
    if (value == nullptr) return "";
    definition += (definition.empty() ? "{" : ",") + json_string(each.what.substr(2)) + ":" +
                  json_string(std::get<std::string>(*value));
  }
  return "rabbitmqctl set_policy -p " + shell_quoted(vhost) + " --apply-to queues " +
         shell_quoted("dead-letter " + wanted.name) + " " + shell_quoted(pattern_of(wanted.name)) + " " +
         shell_quoted(definition + "}");
}

std::string advice(const std::vector<Difference>& differences, const Declaration& wanted,
                   const std::string& vhost) {
  if (wanted.kind == Declaration::Kind::exchange) {
    for (const Difference& each : differences) {
      if (each.what == "type" && each.current != "topic")
        return "; through an exchange of this type a message may reach other steps than its own, so declare "
               "it "
               "again as a direct one";
    }
    return "";
  }
  if (differences.empty()) return "";
  if (only_has_dead_lettering(differences, wanted))
    return "; the pipeline's `dead_letter: true` declares it like this";
  if (!lacks_dead_lettering(differences, wanted)) return "";
  const std::string policy = dead_letter_policy(differences, wanted, vhost);
  if (policy.empty())
    return "; its own arguments say where a rejected message goes, and these win over any policy";
  return "; it drops a rejected message unless a policy says otherwise (with such a policy, the pipeline's "
         "`dead_letter: false` ends this warning); this command gives it one: " +
         policy;
}

}  // namespace bellhop
