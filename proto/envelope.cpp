#include "proto/envelope.h"

#include <iterator>
#include <string>

#include "proto/table.h"

namespace bellhop::proto {

namespace {

enum Header { id, type_name, version, correlation, attempt, first_seen, origin };

constexpr std::string_view names[] = {"x-acemq-id",          "x-acemq-type",    "x-acemq-version",
                                      "x-acemq-correlation", "x-acemq-attempt", "x-acemq-first-seen",
                                      "x-acemq-origin"};

}  // namespace

void put_envelope(Buffer& out, const ContentHeader& header, const EnvelopeFacts& facts) {
  bool is_there[std::size(names)] = {};
  // An id that is set already is the one that a missing correlation falls back to. `out` moves when it grows.
  std::string_view message = facts.message_id;
  std::string id_in_out;
  for (const Bytes fields : {header.header_fields(), Bytes(out)}) {
    TableCursor cursor(fields);
    while (const auto field = cursor.next()) {
      if (!field->name.starts_with("x-acemq-")) continue;
      for (size_t which = 0; which < std::size(names); ++which) {
        if (field->name == names[which]) is_there[which] = true;
      }
      const auto text = field->name == names[id] ? field_string(*field) : std::nullopt;
      if (!text) continue;
      if (fields.data() == out.data()) id_in_out = *text;
      message = fields.data() == out.data() ? id_in_out : *text;
    }
  }
  const auto put_text = [&](Header which, std::string_view text) {
    if (!is_there[which] && !text.empty()) put_field(out, names[which], text);
  };
  const auto put_number = [&](Header which, int64_t value) {
    if (!is_there[which]) put_field(out, names[which], value);
  };
  std::string_view message_type = header.text(type);
  if (message_type.empty()) message_type = facts.routing_key;
  if (message_type.empty()) message_type = "message";
  const std::string_view correlated = header.text(correlation_id);

  put_text(id, facts.message_id);
  put_text(type_name, message_type);
  put_number(version, 1);
  put_text(correlation, correlated.empty() ? message : correlated);
  put_number(attempt, 1);
  put_number(first_seen, facts.now_ms);
  put_text(origin, facts.origin);
}

}  // namespace bellhop::proto
