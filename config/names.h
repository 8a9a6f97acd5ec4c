// Tells which texts are names that AMQP, a slip or bellhop itself can carry. Each function reports a wrong
// text at the value and returns false.
#pragma once

#include <string>

#include "config/reader.h"

namespace bellhop::config {

inline constexpr size_t short_string_bytes_max = 255;  // AMQP 0-9-1 section 4.2.5.3

bool check_short_string(const Value& value, const std::string& text);
// Not empty, at most 255 bytes, no control characters: route names, the service.
bool check_name(const Value& value, const std::string& text);
// [A-Za-z0-9][A-Za-z0-9._-]*, at most 128 bytes: a store's name travels in a header.
bool check_store_name(const Value& value, const std::string& name);
// May be empty: the default exchange. Refuses the exchanges that exist only in bellhop.
bool check_exchange(const Value& value, const std::string& exchange);
// A header that a route adds or, with `only_matched`, looks at: not empty, at most 255 bytes, and none that
// bellhop writes itself.
bool check_header_name(const Value& value, const std::string& name, bool only_matched);

}  // namespace bellhop::config
