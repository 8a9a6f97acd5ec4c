// The table walk. Promised: the fields that it hands out are the bytes of the table, without a gap, and the
// two ways to ask whether a table is well-formed agree.
#include "proto/table.h"

#include "proto/trace_context.h"
#include "test/fuzz/fuzz.h"

using namespace bellhop;
using namespace bellhop::proto;
using fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes in(data, size);
  TableCursor cursor(in);
  Buffer walked;
  while (const auto field = cursor.next()) {
    put(walked, field->raw);
    if (const auto string = field_string(*field)) {
      const size_t digits = trace_id_of(*string).size();
      check(digits == 0 || digits == 32);
    }
    const auto integer = field_integer(*field);
    const auto text = field_text(*field);
    if (integer) check(text.has_value());

    Buffer copy;
    if (integer) {
      put_field(copy, field->name, *integer);
      check(field_integer(*TableCursor(copy).next()) == integer);
    } else if (text) {
      put_field(copy, field->name, *text);
      check(field_string(*TableCursor(copy).next()) == *text);
    }
    check(table_is_well_formed(copy));
  }
  check(cursor.ok() == table_is_well_formed(in));
  check(walked.size() <= in.size() && fuzz::same(walked, in.first(walked.size())));
  if (cursor.ok()) check(walked.size() == in.size());
  return 0;
}
