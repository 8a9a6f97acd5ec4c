#include "config/names.h"

#include "proto/itinerary.h"
#include "proto/routing_slip.h"

namespace bellhop::config {

namespace {

constexpr size_t store_name_bytes_max = 128;

bool has_control_character(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

bool is_slip_header(const std::string& name) {
  return name == proto::slip_route_header || name == proto::slip_position_header ||
         name == proto::slip_id_header || name == proto::itinerary_header;
}

}  // namespace

bool check_short_string(const Value& value, const std::string& text) {
  if (text.size() <= short_string_bytes_max) return true;
  value.error("has " + std::to_string(text.size()) + " bytes, allowed: at most 255");
  return false;
}

bool check_name(const Value& value, const std::string& text) {
  if (text.empty()) {
    value.error("is empty, allowed: a name of 1 to 255 bytes");
    return false;
  }
  if (has_control_character(text)) {
    value.error("has a control character in it, allowed: printable text");
    return false;
  }
  return check_short_string(value, text);
}

bool check_store_name(const Value& value, const std::string& name) {
  const auto is_alnum = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  bool good = !name.empty() && name.size() <= store_name_bytes_max && is_alnum(name[0]);
  for (const char c : name) good = good && (is_alnum(c) || c == '.' || c == '_' || c == '-');
  if (!good)
    value.error(
        "is no store's name, allowed: 1 to 128 letters, digits, '.', '_', '-', a letter or digit first");
  return good;
}

bool check_exchange(const Value& value, const std::string& exchange) {
  if (exchange == "bellhop.next" || exchange == "bellhop.route") {
    value.error("'" + exchange + "' exists only in bellhop, allowed: an exchange of the broker");
    return false;
  }
  return check_short_string(value, exchange);
}

bool check_header_name(const Value& value, const std::string& name, bool only_matched) {
  if (name.empty()) {
    value.error("the header's name is empty, allowed: 1 to 255 bytes");
    return false;
  }
  if (name.size() > short_string_bytes_max) {
    value.error("the header's name has " + std::to_string(name.size()) + " bytes, allowed: at most 255");
    return false;
  }
  if (name.starts_with("bellhop-claim-") || (!only_matched && name.starts_with("bellhop-"))) {
    value.error(
        std::string("is a header that bellhop writes itself, allowed: names that do not start with ") +
        (only_matched ? "bellhop-claim-" : "bellhop-"));
    return false;
  }
  if (!only_matched && is_slip_header(name)) {
    value.error("is a routing slip's header, allowed: another header; `slip` starts a slip");
    return false;
  }
  return true;
}

}  // namespace bellhop::config
