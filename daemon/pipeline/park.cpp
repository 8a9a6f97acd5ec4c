#include "daemon/pipeline/park.h"

#include "daemon/pipeline/stamp.h"
#include "proto/method.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr std::string_view parked_suffix = ".parked";

// What a park leaves out, more from form to form.
struct Form {
  size_t reason_bytes;  // 0: no reason
  bool with_deaths, with_claim_headers;
};
constexpr Form forms[] = {{error_reason_bytes_max, true, true},
                          {100, true, true},
                          {100, false, true},
                          {100, false, false},
                          {0, false, false}};

struct Kept {
  const Form& form;
  bool old_reason;
};

bool keep_in_park(const void* context, std::string_view name) {
  const auto& kept = *static_cast<const Kept*>(context);
  if (name == error_header) return kept.old_reason;
  if (is_death_header(name)) return kept.form.with_deaths;
  if (is_claim_header(name)) return kept.form.with_claim_headers;
  return name != "CC" && name != "BCC";
}

void put_renamed(Buffer& fields, std::string_view name, const proto::Field& field) {
  put_shortstr(fields, name);
  put_u8(fields, static_cast<uint8_t>(field.type));
  put(fields, field.value);
}

}  // namespace

bool is_death_header(std::string_view name) {
  return name == "x-death" || name.starts_with("x-first-death-") || name.starts_with("x-last-death-");
}

bool is_parked_queue(std::string_view queue) {
  return queue.ends_with(parked_suffix);
}

std::string parked_queue_of(std::string_view queue, bool is_exclusive) {
  if (queue.empty() || is_exclusive || queue.starts_with("amq.") || is_parked_queue(queue) ||
      queue.size() + parked_suffix.size() > 255)
    return "bellhop.parked";
  return std::string(queue) + std::string(parked_suffix);
}

bool is_parkable(Bytes header_payload) {
  auto header = proto::decode_content_header(header_payload);
  return header && proto::table_is_well_formed(header.value().header_fields());
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

bool put_park(Buffer& out, uint16_t channel, std::string_view parked_queue, Bytes header_payload,
              uint64_t body_bytes, std::string_view reason, std::string_view broker_user,
              size_t frame_bytes_max) {
  auto header = proto::decode_content_header(header_payload);
  if (!header) return false;
  Buffer fields;
  proto::HeaderEdits edits;
  edits.drop_user_id = put_renamed_fields(fields, header.value(), broker_user);
  if (header.value().has(proto::expiration)) {
    proto::put_field(fields, "bellhop-expiration", header.value().text(proto::expiration));
    edits.drop_expiration = true;
  }
  edits.keep = keep_in_park;
  edits.delivery_mode = uint8_t{2};
  edits.body_bytes = body_bytes;
  const size_t before = out.size(), fields_bytes = fields.size();
  proto::put_publish(out, channel, {"", parked_queue, true, false});
  for (const Form& form : forms) {
    const Kept kept{form, reason.empty() && form.reason_bytes != 0};
    edits.keep_context = &kept;
    fields.resize(fields_bytes);
    if (!reason.empty() && form.reason_bytes != 0)
      proto::put_field(fields, error_header, reason.substr(0, form.reason_bytes));
    edits.append = fields;
    if (proto::put_content_header(out, channel, header.value(), edits, frame_bytes_max)) return true;
  }
  out.resize(before);
  return false;
}

}  // namespace bellhop
