#include "daemon/pipeline/park.h"

#include "proto/method.h"
#include "proto/table.h"

namespace bellhop {

namespace {

bool keep_in_park(const void*, std::string_view name) {
  return name != "CC" && name != "BCC" && name != error_header;
}

void put_renamed(Buffer& fields, std::string_view name, const proto::Field& field) {
  put_shortstr(fields, name);
  put_u8(fields, static_cast<uint8_t>(field.type));
  put(fields, field.value);
}

}  // namespace

std::string parked_queue_of(std::string_view queue, bool is_exclusive) {
  constexpr std::string_view suffix = ".parked";
  if (queue.empty() || is_exclusive || queue.starts_with("amq.") || queue.size() + suffix.size() > 255)
    return "bellhop.parked";
  return std::string(queue) + std::string(suffix);
}

bool put_renamed_fields(Buffer& fields, const proto::ContentHeader& header, std::string_view broker_user) {
  proto::TableCursor cursor(header.header_fields());
  while (auto field = cursor.next()) {
    if (field->name == "CC") put_renamed(fields, "bellhop-cc", *field);
    if (field->name == "BCC") put_renamed(fields, "bellhop-bcc", *field);
  }
  if (!header.has(proto::user_id) || header.text(proto::user_id) == broker_user) return false;
  proto::put_field(fields, "bellhop-user-id", header.text(proto::user_id));
  return true;
}

bool put_park(Buffer& out, uint16_t channel, std::string_view parked_queue, Bytes header_payload, Bytes body,
              std::string_view reason, std::string_view broker_user, size_t frame_bytes_max) {
  auto header = proto::decode_content_header(header_payload);
  if (!header) return false;
  Buffer fields;
  proto::HeaderEdits edits;
  edits.drop_user_id = put_renamed_fields(fields, header.value(), broker_user);
  if (header.value().has(proto::expiration)) {
    proto::put_field(fields, "bellhop-expiration", header.value().text(proto::expiration));
    edits.drop_expiration = true;
  }
  proto::put_field(fields, error_header, reason.substr(0, error_reason_bytes_max));
  edits.append = fields;
  edits.keep = keep_in_park;
  edits.delivery_mode = uint8_t{2};
  edits.body_bytes = body.size();
  size_t before = out.size();
  proto::put_publish(out, channel, {"", parked_queue, true, false});
  if (!proto::put_content_header(out, channel, header.value(), edits, frame_bytes_max)) {
    out.resize(before);
    return false;
  }
  proto::put_body_frames(out, channel, body, frame_bytes_max);
  return true;
}

}  // namespace bellhop
