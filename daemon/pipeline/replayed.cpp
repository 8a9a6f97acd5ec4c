#include "daemon/pipeline/replayed.h"

#include <algorithm>

#include "daemon/pipeline/park.h"
#include "proto/content_header.h"
#include "proto/frame.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr std::string_view replayed_from_header = "acemq-replayed-from";
constexpr std::string_view replayed_at_header = "acemq-replayed-at";
constexpr std::string_view replay_count_header = "acemq-replay-count";
constexpr std::string_view attempt_header = "x-acemq-attempt";
constexpr std::string_view expiration_header = "bellhop-expiration";
constexpr std::string_view user_id_header = "bellhop-user-id";

// What a broker writes into a message by itself.
bool is_brokers_own(std::string_view name) {
  return name == "x-delivery-count" || name == "x-acquired-count" || name == "x-stream-offset";
}

bool is_cc(std::string_view name) {
  return name == "CC" || name == "BCC" || name == "bellhop-cc" || name == "bellhop-bcc";
}

// Everything that is written anew, or that belongs to the failure which is over.
bool keep_in_replay(const void*, std::string_view name) {
  return !is_death_header(name) && !is_brokers_own(name) && !is_cc(name) && name != error_header &&
         name != attempt_header && name != expiration_header && name != user_id_header &&
         name != replayed_from_header && name != replayed_at_header && name != replay_count_header;
}

bool keep_in_copy(const void*, std::string_view name) {
  return !is_brokers_own(name) && name != "CC" && name != "BCC" && name != user_id_header;
}

// What replayed_header finds among the fields.
struct Found {
  int64_t replays = 0;
  bool has_attempt = false;
  std::string_view expiration, user_id;
};

void put_renamed(Buffer& fields, std::string_view name, const proto::Field& field) {
  put_shortstr(fields, name);
  put_u8(fields, static_cast<uint8_t>(field.type));
  put(fields, field.value);
}

Found take_fields(Bytes header_fields, bool without_cc, Buffer& fields) {
  Found out;
  proto::TableCursor cursor(header_fields);
  while (const auto field = cursor.next()) {
    const std::string_view name = field->name;
    if (name == "CC" || name == "bellhop-cc") put_renamed(fields, without_cc ? "bellhop-cc" : "CC", *field);
    if (name == "BCC" || name == "bellhop-bcc")
      put_renamed(fields, without_cc ? "bellhop-bcc" : "BCC", *field);
    if (name == attempt_header) out.has_attempt = true;
    if (name == expiration_header) out.expiration = proto::field_string(*field).value_or(std::string_view{});
    if (name == user_id_header) out.user_id = proto::field_string(*field).value_or(std::string_view{});
    if (name == replay_count_header) out.replays = proto::field_integer(*field).value_or(0);
  }
  return out;
}

// Sets a short string property to what `encoded` then holds, which must outlive the header.
void set(proto::ContentHeader& header, proto::Property which, std::string_view text, Buffer& encoded) {
  encoded.clear();
  put_shortstr(encoded, text);
  header.property[which] = encoded;
  header.flags |= static_cast<uint16_t>(0x8000u >> which);
}

std::optional<Buffer> written(const proto::ContentHeader& header, const proto::HeaderEdits& edits,
                              size_t frame_bytes_max) {
  Buffer out;
  if (!proto::put_content_header(out, 1, header, edits, frame_bytes_max)) return std::nullopt;
  out.erase(out.begin(), out.begin() + static_cast<ptrdiff_t>(proto::frame_head_bytes));
  out.pop_back();  // the frame's end
  return out;
}

}  // namespace

std::optional<Buffer> replayed_header(Bytes header_payload, const Replay& replay, size_t frame_bytes_max) {
  auto decoded = proto::decode_content_header(header_payload);
  if (!decoded) return std::nullopt;
  proto::ContentHeader& header = decoded.value();
  Buffer fields, expiration, user_id;
  const Found found = take_fields(header.header_fields(), replay.without_cc, fields);
  if (!found.expiration.empty() && !header.has(proto::expiration))
    set(header, proto::expiration, found.expiration, expiration);
  // A broker refuses another user's name than the connection's own.
  std::string_view theirs = header.has(proto::user_id) ? header.text(proto::user_id) : found.user_id;
  proto::HeaderEdits edits;
  if (!theirs.empty() && theirs == replay.broker_user) {
    set(header, proto::user_id, theirs, user_id);
  } else if (!theirs.empty()) {
    edits.drop_user_id = true;
    proto::put_field(fields, user_id_header, theirs);
  }
  if (found.has_attempt) proto::put_field(fields, attempt_header, int64_t{1});
  const size_t without_stamps = fields.size();
  proto::put_field(fields, replayed_from_header, replay.from_queue);
  proto::put_field(fields, replayed_at_header, replay.at);
  proto::put_field(fields, replay_count_header, std::max<int64_t>(found.replays, 0) + 1);
  edits.keep = keep_in_replay;
  edits.append = fields;
  if (auto out = written(header, edits, frame_bytes_max)) return out;
  edits.append = Bytes(fields).first(without_stamps);
  return written(header, edits, frame_bytes_max);
}

std::optional<Buffer> copied_header(Bytes header_payload, std::string_view broker_user,
                                    size_t frame_bytes_max) {
  const auto header = proto::decode_content_header(header_payload);
  if (!header) return std::nullopt;
  Buffer fields;
  proto::HeaderEdits edits;
  edits.drop_user_id = put_renamed_fields(fields, header.value(), broker_user);
  edits.keep = keep_in_copy;
  edits.append = fields;
  return written(header.value(), edits, frame_bytes_max);
}

}  // namespace bellhop
