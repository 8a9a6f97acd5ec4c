// AMQP field tables as RabbitMQ writes and reads them, walked without decoding, so that a foreign field stays
// byte for byte. Types and sizes in bytes: t b B 1; s u 2; I i f 4; l L d T 8; D 5; V 0; S x A F 4 + length
// (the length is a u32). (RabbitMQ reads `s` as a 16 bit integer, not as the specification's short string.)
#pragma once

#include <optional>

#include "proto/bytes.h"

namespace bellhop::proto {

struct Field {
  std::string_view name;
  char type = 0;
  Bytes value;  // the encoded value without its type octet; for S and x with the 4 length bytes
  Bytes raw;    // name length, name, type, value
};

// Walks the fields of one table. `fields`: the table without its length. When next() returned nothing, ok()
// says whether the table was walked to its end. False: an unknown type, truncation, or a nested table or
// array that is malformed or more than 64 deep.
class TableCursor {
 public:
  explicit TableCursor(Bytes fields) : rest_(fields) {}
  std::optional<Field> next();
  bool ok() const { return ok_; }

 private:
  Bytes rest_;
  bool ok_ = true;
};

bool table_is_well_formed(Bytes fields);

// The first field of this name. Nothing: there is none, or none before the table's malformed part.
inline std::optional<Field> find_field(Bytes fields, std::string_view name) {
  TableCursor cursor(fields);
  while (auto field = cursor.next()) {
    if (field->name == name) return field;
  }
  return std::nullopt;
}

// Walks the values of an array (A), given without its own length, as fields without a name. As TableCursor;
// nested ones count their depth anew, so a caller that goes into them bounds its own.
class ArrayCursor {
 public:
  explicit ArrayCursor(Bytes values) : rest_(values) {}
  std::optional<Field> next();
  bool ok() const { return ok_; }

 private:
  Bytes rest_;
  bool ok_ = true;
};

// A string (S) or byte array (x) field's bytes; nothing for another type.
std::optional<std::string_view> field_string(const Field& field);
// An integer of any width, signed or unsigned (t b B s u I i l L, T), or decimal text in an S. Nothing
// otherwise, or when it does not fit.
std::optional<int64_t> field_integer(const Field& field);
// Reads decimal text, with a sign and blanks around it, as the libraries' own parsers do. Nothing when it is
// none or does not fit.
std::optional<int64_t> decimal_integer(std::string_view text);
// Text to compare with a configured value: strings as they are, integers in decimal, booleans as true or
// false; nothing for other types.
std::optional<std::string> field_text(const Field& field);

// Appends one encoded field.
void put_field(Buffer& out, std::string_view name, std::string_view text);  // S
void put_field(Buffer& out, std::string_view name, int64_t value);          // l

}  // namespace bellhop::proto
