// The content header frame of class basic (specification section 4.2.6.1). It is read without copying and
// written again with edits, so that every property and header that is not bellhop's stays byte for byte.
//
//   0       2        4            12      14
//   +-------+--------+------------+-------+---------------------------------------+
//   | class | weight | body size  | flags | properties present, in the flags' order |
//   +-------+--------+------------+-------+---------------------------------------+
#pragma once

#include <array>
#include <optional>

#include "proto/bytes.h"
#include "proto/result.h"

namespace bellhop::proto {

// In the order of the wire and of the flag bits (content_type is bit 15).
enum Property : uint8_t {
  content_type,
  content_encoding,
  headers,
  delivery_mode,
  priority,
  correlation_id,
  reply_to,
  expiration,
  message_id,
  timestamp,
  type,
  user_id,
  app_id,
  cluster_id,
  property_count
};

inline constexpr size_t header_fixed_bytes = 14;  // class, weight, body size, flags

struct ContentHeader {
  uint64_t body_bytes = 0;
  uint16_t flags = 0;
  // Each property's encoded bytes with its length; empty when absent. headers: with the table's 4 length
  // bytes.
  std::array<Bytes, property_count> property;

  bool has(Property which) const { return (flags & (0x8000u >> which)) != 0; }
  std::string_view text(Property which) const;  // a short string property's text, empty when absent
  Bytes header_fields() const;                  // the headers table without its length, empty when absent
};

// Borrows from `payload`. Errors: another class than 60, a weight that is not 0, a flag bit that stands for
// no property (0 and 1), truncation, trailing bytes. Takes the headers table by its length, without walking
// it.
Result<ContentHeader> decode_content_header(Bytes payload);
// Whether decode_content_header takes these flags with these properties: what follows the flags in a payload.
bool are_whole_properties(uint16_t flags, Bytes properties);

// What to change. The views must live until the call ends.
struct HeaderEdits {
  std::optional<uint64_t> body_bytes;
  std::optional<uint8_t> delivery_mode;
  std::string_view message_id;  // written when not empty
  bool drop_expiration = false, drop_user_id = false;
  // Called for each header field; false removes it. Null: all stay.
  bool (*keep)(const void* context, std::string_view name) = nullptr;
  const void* keep_context = nullptr;
  bool drop_emptied_table = false;  // when no field is left, the property goes too
  Bytes append;  // encoded fields for the end of the headers table (put_field); not empty makes a table where
                 // none is
};

// Appends the whole header frame to `out`. False, with nothing appended: the frame would have more than
// frame_bytes_max bytes, or `keep` is set and the table is malformed.
bool put_content_header(Buffer& out, uint16_t channel, const ContentHeader& header, const HeaderEdits& edits,
                        size_t frame_bytes_max);

}  // namespace bellhop::proto
