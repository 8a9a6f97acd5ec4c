#include "config/units.h"

#include "test/support/catch.h"

using namespace bellhop;
using namespace bellhop::config;

TEST_CASE("a size is a whole number and a unit of 1024", "[config]") {
  CHECK(parse_bytes("0").value() == 0);
  CHECK(parse_bytes("0B").value() == 0);
  CHECK(parse_bytes("1B").value() == 1);
  CHECK(parse_bytes("64KiB").value() == 65536);
  CHECK(parse_bytes("256MiB").value() == 268435456);
  CHECK(parse_bytes("4GiB").value() == 4294967296);
}

TEST_CASE("a time is a whole number and a unit, in milliseconds", "[config]") {
  CHECK(parse_time_ms("0").value() == 0);
  CHECK(parse_time_ms("500ms").value() == 500);
  CHECK(parse_time_ms("30s").value() == 30000);
  CHECK(parse_time_ms("10m").value() == 600000);
  CHECK(parse_time_ms("2h").value() == 7200000);
  CHECK(parse_time_ms("30d").value() == 2592000000);
}

TEST_CASE("what is no size or time is refused", "[config]") {
  for (const char* text :
       {"", "64", "KiB", "64KB", "64kib", "64 KiB", "6.4KiB", "+64KiB", "0x40B", "64KiBs"}) {
    INFO(text);
    REQUIRE_FALSE(parse_bytes(text).ok());
    CHECK(parse_bytes(text).error() ==
          "is not a whole number with a unit, allowed: B, KiB, MiB or GiB after a whole number, as in 64KiB, "
          "or 0");
  }
  for (const char* text : {"", "30", "s", "30S", "30 s", "1.5s", "1m30s"}) {
    INFO(text);
    CHECK_FALSE(parse_time_ms(text).ok());
  }
}

TEST_CASE("a negative and an overflowing size say so", "[config]") {
  CHECK(parse_bytes("-1B").error() ==
        "must not be negative, allowed: B, KiB, MiB or GiB after a whole number, as in 64KiB, or 0");
  CHECK(parse_bytes("17179869183GiB").ok());
  for (const char* text : {"17179869184GiB", "18446744073709551616B", "99999999999999999999999GiB"}) {
    INFO(text);
    CHECK(parse_bytes(text).error() ==
          "is too large, allowed: B, KiB, MiB or GiB after a whole number, as in 64KiB, or 0");
  }
}

TEST_CASE("a mode is octal, with three digits or with a leading zero", "[config]") {
  CHECK(parse_mode("0660").value() == 0660);
  CHECK(parse_mode("640").value() == 0640);
  CHECK(parse_mode("0000").value() == 0);
  for (const char* text : {"", "66", "0o660", "1660", "0668", "rw-rw----", "00660"}) {
    INFO(text);
    CHECK_FALSE(parse_mode(text).ok());
  }
}

TEST_CASE("values are shown in the largest exact unit", "[config]") {
  CHECK(show_bytes(0) == "0");
  CHECK(show_bytes(65536) == "64KiB");
  CHECK(show_bytes(65537) == "65537B");
  CHECK(show_time(90000) == "90s");
  CHECK(show_time(1500) == "1500ms");
  CHECK(show_time(86400000) == "1d");
}
