#include "proto/table.h"

#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;
using test::to_hex;

namespace {

// The one field of a table whose bytes stay alive as long as this.
struct OneField {
  explicit OneField(std::string_view hex) : bytes(from_hex(hex)), field(*TableCursor(bytes).next()) {}
  Buffer bytes;
  Field field;
};

std::optional<int64_t> integer(std::string_view hex) {
  return field_integer(OneField(hex).field);
}
std::optional<std::string> text(std::string_view hex) {
  return field_text(OneField(hex).field);
}

// A table with one field that holds `depth` tables, each in the one before.
Buffer nested_tables(int depth) {
  Buffer inner;
  for (int level = 0; level < depth; ++level) {
    Buffer outer = from_hex("01 'n' 'F'");
    put_u32(outer, static_cast<uint32_t>(inner.size()));
    put(outer, inner);
    inner = outer;
  }
  return inner;
}

}  // namespace

TEST_CASE("a table with a field of every type is walked to its end", "[table]") {
  struct Example {
    const char* hex;
    char type;
    size_t value_bytes;
  };
  const Example examples[] = {
      {"01 'a' 't' 01", 't', 1},
      {"01 'a' 'b' FF", 'b', 1},
      {"01 'a' 'B' FF", 'B', 1},
      {"01 'a' 's' FFFE", 's', 2},
      {"01 'a' 'u' FFFE", 'u', 2},
      {"01 'a' 'I' FFFFFFFE", 'I', 4},
      {"01 'a' 'i' FFFFFFFE", 'i', 4},
      {"01 'a' 'f' 3F800000", 'f', 4},
      {"01 'a' 'l' FFFFFFFFFFFFFFFE", 'l', 8},
      {"01 'a' 'L' FFFFFFFFFFFFFFFE", 'L', 8},
      {"01 'a' 'd' 3FF0000000000000", 'd', 8},
      {"01 'a' 'T' 0000000065000000", 'T', 8},
      {"01 'a' 'D' 02 0000007B", 'D', 5},
      {"01 'a' 'V'", 'V', 0},
      {"01 'a' 'S' 00000002 'hi'", 'S', 6},
      {"01 'a' 'x' 00000002 FF00", 'x', 6},
      {"01 'a' 'A' 00000007 'V' 't' 01 'u' 0001 'V'", 'A', 11},
      {"01 'a' 'F' 00000003 01 'n' 'V'", 'F', 7},
      {"00 'V'", 'V', 0},  // a field without a name
  };
  Buffer all;
  for (const Example& example : examples) {
    INFO(example.hex);
    const Buffer bytes = from_hex(example.hex);
    put(all, bytes);
    TableCursor cursor(bytes);
    const auto field = cursor.next();
    REQUIRE(field);
    CHECK(field->type == example.type);
    CHECK(field->value.size() == example.value_bytes);
    CHECK(field->raw.size() == bytes.size());
    CHECK(!cursor.next());
    CHECK(cursor.ok());
    CHECK(table_is_well_formed(bytes));
    // Cut anywhere, it is malformed.
    for (size_t size = 1; size < bytes.size(); ++size) {
      const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      TableCursor walk(cut);
      while (walk.next()) {
      }
      CHECK(!walk.ok());
      CHECK(!table_is_well_formed(cut));
    }
  }
  TableCursor cursor(all);
  size_t fields = 0;
  while (cursor.next()) ++fields;
  CHECK(fields == std::size(examples));
  CHECK(cursor.ok());
}

TEST_CASE("an empty table is well-formed", "[table]") {
  TableCursor cursor({});
  CHECK(!cursor.next());
  CHECK(cursor.ok());
  CHECK(table_is_well_formed({}));
}

TEST_CASE("an unknown type ends the walk as malformed, and it stays so", "[table]") {
  const Buffer bytes = from_hex("01 'a' 'V' 01 'b' 'Z' 01 'c' 'V'");
  TableCursor cursor(bytes);
  CHECK(cursor.next());
  CHECK(!cursor.next());
  CHECK(!cursor.ok());
  CHECK(!cursor.next());
  CHECK(!cursor.ok());
}

TEST_CASE("of fields with the same name the first is found", "[table]") {
  const Buffer bytes = from_hex("01 'a' 'V' 02 'ab' 'B' 01 01 'a' 'B' 02");
  CHECK(find_field(bytes, "a")->type == 'V');
  CHECK(field_integer(*find_field(bytes, "ab")) == 1);
  CHECK(!find_field(bytes, "b"));
  CHECK(!find_field(bytes, ""));
  CHECK(!find_field({}, "a"));
}

TEST_CASE("a field is found before what is malformed, and not in it or behind it", "[table]") {
  const Buffer bytes = from_hex("01 'a' 'V' 01 'b' 'Z' 01 'c' 'V'");
  CHECK(find_field(bytes, "a"));
  CHECK(!find_field(bytes, "b"));
  CHECK(!find_field(bytes, "c"));
}

TEST_CASE("what is nested must be well-formed too", "[table]") {
  CHECK(!table_is_well_formed(from_hex("01 'a' 'F' 00000002 01 'n'")));
  CHECK(!table_is_well_formed(from_hex("01 'a' 'F' 00000003 01 'n' 'Z'")));
  CHECK(!table_is_well_formed(from_hex("01 'a' 'A' 00000002 'u' 00")));
  CHECK(!table_is_well_formed(from_hex("01 'a' 'F' FFFFFFFF 01 'n' 'V'")));
  // The outer table is whole, but the inner one would read past its own end into it.
  CHECK(!table_is_well_formed(from_hex("01 'a' 'F' 00000003 05 'n' 'V' 01 'b' 'V'")));
}

TEST_CASE("tables are nested 64 deep and no deeper", "[table]") {
  CHECK(table_is_well_formed(nested_tables(63)));
  CHECK(!table_is_well_formed(nested_tables(64)));
  const Buffer deep = nested_tables(5000);
  TableCursor cursor(deep);
  CHECK(!cursor.next());
  CHECK(!cursor.ok());
}

TEST_CASE("strings and byte arrays are text", "[table]") {
  CHECK(field_string(OneField("01 'a' 'S' 00000002 'hi'").field) == "hi");
  CHECK(field_string(OneField("01 'a' 'x' 00000002 'hi'").field) == "hi");
  CHECK(field_string(OneField("01 'a' 'S' 00000000").field) == "");
  CHECK(!field_string(OneField("01 'a' 'u' 0001").field));
  CHECK(!field_string(OneField("01 'a' 'V'").field));
}

TEST_CASE("an integer of any width is an integer", "[table]") {
  CHECK(integer("01 'a' 't' 02") == 1);
  CHECK(integer("01 'a' 'b' FF") == -1);
  CHECK(integer("01 'a' 'B' FF") == 255);
  CHECK(integer("01 'a' 's' FFFE") == -2);
  CHECK(integer("01 'a' 'u' FFFE") == 65534);
  CHECK(integer("01 'a' 'I' FFFFFFFE") == -2);
  CHECK(integer("01 'a' 'i' FFFFFFFE") == 4294967294);
  CHECK(integer("01 'a' 'l' FFFFFFFFFFFFFFFE") == -2);
  CHECK(integer("01 'a' 'L' 0000000000000007") == 7);
  CHECK(integer("01 'a' 'T' 0000000000000007") == 7);
  CHECK(!integer("01 'a' 'L' 8000000000000000"));
  CHECK(!integer("01 'a' 'f' 3F800000"));
  CHECK(!integer("01 'a' 'd' 3FF0000000000000"));
  CHECK(!integer("01 'a' 'D' 00 00000001"));
  CHECK(!integer("01 'a' 'V'"));
  CHECK(!integer("01 'a' 'F' 00000000"));
}

TEST_CASE("decimal text is an integer, other text is not", "[table]") {
  CHECK(integer("01 'a' 'S' 00000002 '42'") == 42);
  CHECK(integer("01 'a' 'S' 00000002 '-3'") == -3);
  CHECK(integer("01 'a' 'S' 00000002 '+3'") == 3);
  CHECK(integer("01 'a' 'S' 00000003 ' 3 '") == 3);
  CHECK(integer("01 'a' 'S' 00000013 '9223372036854775807'") == INT64_MAX);
  CHECK(!integer("01 'a' 'S' 00000013 '9223372036854775808'"));
  CHECK(!integer("01 'a' 'S' 00000000"));
  CHECK(!integer("01 'a' 'S' 00000001 ' '"));
  CHECK(!integer("01 'a' 'S' 00000001 '+'"));
  CHECK(!integer("01 'a' 'S' 00000003 '+-3'"));
  CHECK(!integer("01 'a' 'S' 00000003 '1.5'"));
  CHECK(!integer("01 'a' 'S' 00000004 '0x10'"));
  CHECK(!integer("01 'a' 'S' 00000003 'two'"));
}

TEST_CASE("a field's text for a comparison", "[table]") {
  CHECK(text("01 'a' 'S' 00000002 'hi'") == "hi");
  CHECK(text("01 'a' 't' 01") == "true");
  CHECK(text("01 'a' 't' 00") == "false");
  CHECK(text("01 'a' 'b' FF") == "-1");
  CHECK(text("01 'a' 'L' FFFFFFFFFFFFFFFF") == "18446744073709551615");
  CHECK(!text("01 'a' 'd' 3FF0000000000000"));
  CHECK(!text("01 'a' 'V'"));
}

TEST_CASE("fields are written as strings and as 64 bit integers", "[table]") {
  Buffer out;
  put_field(out, "x-a", std::string_view("hi"));
  put_field(out, "x-b", int64_t{-2});
  CHECK(to_hex(out) == to_hex(from_hex("03 'x-a' 'S' 00000002 'hi' 03 'x-b' 'l' FFFFFFFFFFFFFFFE")));
  CHECK(table_is_well_formed(out));
}
