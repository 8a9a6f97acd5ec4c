#include "daemon/pipeline/deaths.h"

#include "proto/table.h"

namespace bellhop {

namespace {

Death death_of(Bytes fields) {
  Death out;
  proto::TableCursor cursor(fields);
  while (const auto field = cursor.next()) {
    const auto text = [&] { return std::string(proto::field_string(*field).value_or(std::string_view{})); };
    if (field->name == "queue") out.queue = text();
    if (field->name == "reason") out.reason = text();
    if (field->name == "exchange") out.exchange = text();
    if (field->name == "count") out.count = proto::field_integer(*field).value_or(1);
    if (field->name == "time") out.first_at_s = proto::field_integer(*field).value_or(0);
    if (field->name == "routing-keys" && field->type == 'A') {
      proto::ArrayCursor keys(field->value.subspan(4));
      while (const auto key = keys.next())
        out.routing_keys.emplace_back(proto::field_string(*key).value_or(std::string_view{}));
    }
  }
  return out;
}

}  // namespace

std::vector<Death> deaths_of(Bytes header_fields) {
  std::vector<Death> out;
  const auto field = proto::find_field(header_fields, "x-death");
  if (!field || field->type != 'A') return out;
  proto::ArrayCursor deaths(field->value.subspan(4));
  while (const auto each = deaths.next()) {
    if (each->type != 'F') continue;
    Death death = death_of(each->value.subspan(4));
    if (!death.queue.empty()) out.push_back(std::move(death));
  }
  return out;
}

int64_t delivery_count_of(Bytes header_fields) {
  const auto field = proto::find_field(header_fields, "x-delivery-count");
  return field ? proto::field_integer(*field).value_or(0) : 0;
}

}  // namespace bellhop
