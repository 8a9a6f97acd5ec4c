#include "daemon/cli/inspect/words.h"

#include "test/support/catch.h"

using namespace bellhop;

TEST_CASE("sizes, times and counts as a person reads them", "[words]") {
  CHECK(bytes_in_words(0) == "0 bytes");
  CHECK(bytes_in_words(1) == "1 byte");
  CHECK(bytes_in_words(9999) == "9,999 bytes");
  CHECK(bytes_in_words(20971520) == "21.0 MB (20971520 bytes)");
  CHECK(time_in_words(-5) == "0 s");
  CHECK(time_in_words(119) == "119 s");
  CHECK(time_in_words(120) == "2 min");
  CHECK(time_in_words(3 * 3600 + 20 * 60) == "3 h 20 min");
  CHECK(time_in_words(24 * 3600) == "1 day");
  CHECK(time_in_words(30 * 86400 - 3600) == "29 days 23 h");
  CHECK(utc_in_words(1796094000) == "2026-12-01 03:00:00 UTC");
  CHECK(counted(1, "message") == "1 message");
  CHECK(counted(1234567, "message") == "1,234,567 messages");
}

TEST_CASE("text out of a message cannot write to the terminal what it likes", "[words]") {
  CHECK(printable("plain, \xc3\xa4nd accents") == "plain, \xc3\xa4nd accents");
  CHECK(printable("a\nb\t\x1b[31m\x7f") == "a\\nb\\t\\x1b[31m\\x7f");
  CHECK(printable("\xc2\x9b!") == "\\x9b!");
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable(std::string(1000, 'a'), 10) == "aaaaaaaaaa... (990 bytes more)");
}
