#include "proto/trace_context.h"

#include <algorithm>

#include "proto/table.h"

namespace bellhop::proto {

namespace {

constexpr size_t version_at = 0, version_digits = 2;
constexpr size_t trace_at = 3, trace_digits = 32;
constexpr size_t parent_at = 36, parent_digits = 16;
constexpr size_t flags_at = 53, flags_digits = 2;
constexpr size_t whole = 55;

bool are_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool are_zeros(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

std::string_view trace_id_of(std::string_view traceparent) {
  if (traceparent.size() < whole) return {};
  const std::string_view version = traceparent.substr(version_at, version_digits);
  const std::string_view trace = traceparent.substr(trace_at, trace_digits);
  const std::string_view parent = traceparent.substr(parent_at, parent_digits);
  const std::string_view flags = traceparent.substr(flags_at, flags_digits);
  for (const size_t dash : {trace_at - 1, parent_at - 1, flags_at - 1}) {
    if (traceparent[dash] != '-') return {};
  }
  if (!are_hex(version) || !are_hex(trace) || !are_hex(parent) || !are_hex(flags)) return {};
  if (version == "ff" || are_zeros(trace) || are_zeros(parent)) return {};
  if (traceparent.size() > whole && (version == "00" || traceparent[whole] != '-')) return {};
  return trace;
}

std::string_view trace_id_in(Bytes header_fields) {
  const auto field = find_field(header_fields, traceparent_header);
  if (!field) return {};
  const auto text = field_string(*field);
  return text ? trace_id_of(*text) : std::string_view{};
}

}  // namespace bellhop::proto
