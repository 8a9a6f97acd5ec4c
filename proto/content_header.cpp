#include "proto/content_header.h"

#include <bit>

#include "proto/frame.h"
#include "proto/method.h"
#include "proto/table.h"
#include "proto/writer.h"

namespace bellhop::proto {

namespace {

constexpr uint16_t flag(Property which) {
  return static_cast<uint16_t>(0x8000u >> which);
}

// The first property of these flags, which are not 0; it is taken out of them.
unsigned take_first(uint16_t& flags) {
  const auto which = static_cast<unsigned>(std::countl_zero(flags));
  flags &= static_cast<uint16_t>(~(0x8000u >> which));
  return which;
}

// The encoded size of a property that `rest` starts with, which may be more than there is.
size_t property_bytes(unsigned which, Bytes rest) {
  switch (which) {
    case headers:
      return rest.size() < 4 ? 4 : size_t{4} + load_u32(rest.data());
    case delivery_mode:
    case priority:
      return 1;
    case timestamp:
      return 8;
    default:
      return rest.empty() ? 1 : size_t{1} + rest[0];
  }
}

// Copies the fields that stay, neighbours in one go. False when the table is malformed.
bool put_kept_fields(Writer& to, Bytes fields, const HeaderEdits& edits) {
  if (edits.keep == nullptr) {
    to.bytes(fields);
    return true;
  }
  TableCursor cursor(fields);
  const uint8_t* run = fields.data();
  size_t run_bytes = 0;
  while (const auto field = cursor.next()) {
    if (edits.keep(edits.keep_context, field->name)) {
      run_bytes += field->raw.size();
    } else {
      to.bytes({run, run_bytes});
      run = field->raw.data() + field->raw.size();
      run_bytes = 0;
    }
  }
  to.bytes({run, run_bytes});
  return cursor.ok();
}

bool put_headers(Writer& to, const ContentHeader& header, const HeaderEdits& edits) {
  uint8_t* const length_at = to.at();
  to.u32(0);
  if (!put_kept_fields(to, header.header_fields(), edits)) return false;
  to.bytes(edits.append);
  store_u32(length_at, static_cast<uint32_t>(to.at() - length_at - 4));
  return true;
}

}  // namespace

std::string_view ContentHeader::text(Property which) const {
  return has(which) && !property[which].empty() ? as_text(property[which].subspan(1)) : std::string_view{};
}

Bytes ContentHeader::header_fields() const {
  return has(headers) && property[headers].size() >= 4 ? property[headers].subspan(4) : Bytes{};
}

Result<ContentHeader> decode_content_header(Bytes payload) {
  if (payload.size() < header_fixed_bytes) return Error{"content header: cut off before its property flags"};
  if (load_u16(payload.data()) != class_basic) return Error{"content header: its class is not 60 (basic)"};
  if (load_u16(payload.data() + 2) != 0) return Error{"content header: its weight is not 0"};
  ContentHeader header;
  header.body_bytes = load_u64(payload.data() + 4);
  header.flags = load_u16(payload.data() + 12);
  if ((header.flags & 3u) != 0) return Error{"content header: a property flag that stands for no property"};
  Bytes rest = payload.subspan(header_fixed_bytes);
  for (uint16_t left = header.flags; left != 0;) {
    const unsigned which = take_first(left);
    const size_t size = property_bytes(which, rest);
    if (rest.size() < size) return Error{"content header: its properties are cut off"};
    header.property[which] = rest.first(size);
    rest = rest.subspan(size);
  }
  if (!rest.empty()) return Error{"content header: bytes after the last property"};
  return header;
}

bool are_whole_properties(uint16_t flags, Bytes properties) {
  if ((flags & 3u) != 0) return false;
  for (uint16_t left = flags; left != 0;) {
    const unsigned which = take_first(left);
    const size_t size = property_bytes(which, properties);
    if (properties.size() < size) return false;
    properties = properties.subspan(size);
  }
  return properties.empty();
}

bool put_content_header(Buffer& out, uint16_t channel, const ContentHeader& header, const HeaderEdits& edits,
                        size_t frame_bytes_max) {
  const size_t begin = out.size();
  const std::string_view id = shortstr_cut(edits.message_id);
  uint16_t flags = header.flags;
  if (edits.delivery_mode) flags |= flag(delivery_mode);
  if (!id.empty()) flags |= flag(message_id);
  if (!edits.append.empty()) flags |= flag(headers);
  if (edits.drop_expiration) flags &= static_cast<uint16_t>(~flag(expiration));
  if (edits.drop_user_id) flags &= static_cast<uint16_t>(~flag(user_id));

  // One growth to the most that this can come to; what was not needed is given back at the end.
  size_t bytes_max = frame_overhead_bytes + header_fixed_bytes + 1 + 1 + id.size() + 4 + edits.append.size();
  for (uint16_t left = header.flags; left != 0;) bytes_max += header.property[take_first(left)].size();
  Writer to(out, bytes_max);
  to.u8(frame_header);
  to.u16(channel);
  to.u32(0);
  to.u16(class_basic);
  to.u16(0);
  to.u64(edits.body_bytes.value_or(header.body_bytes));
  uint8_t* const flags_at = to.at();
  to.u16(flags);
  bool is_written = true;
  for (uint16_t left = flags; left != 0 && is_written;) {
    const unsigned which = take_first(left);
    if (which == headers && (!edits.append.empty() || edits.keep != nullptr)) {
      uint8_t* const table_at = to.at();
      is_written = put_headers(to, header, edits);
      if (edits.drop_emptied_table && is_written && load_u32(table_at) == 0) {
        to.rewind(table_at);
        store_u16(flags_at, flags & static_cast<uint16_t>(~flag(headers)));
      }
    } else if (which == delivery_mode && edits.delivery_mode) {
      to.u8(*edits.delivery_mode);
    } else if (which == message_id && !id.empty()) {
      to.shortstr(id);
    } else {
      to.bytes(header.property[which]);
    }
  }
  const size_t frame_bytes = static_cast<size_t>(to.at() - out.data()) - begin + 1;
  if (!is_written || frame_bytes > frame_bytes_max) {
    out.resize(begin);
    return false;
  }
  to.u8(frame_end);
  store_u32(out.data() + begin + 3, static_cast<uint32_t>(frame_bytes - frame_overhead_bytes));
  out.resize(begin + frame_bytes);
  return true;
}

}  // namespace bellhop::proto
