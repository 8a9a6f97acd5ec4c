#include "proto/utf8.h"

#include <string>

#include "test/support/catch.h"

using namespace bellhop::proto;

TEST_CASE("well-formed UTF-8 of every length", "[utf8]") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\xc3\xa9x") == 2);
  CHECK(utf8_length("\xe2\x82\xac") == 3);
  CHECK(utf8_length("\xf0\x9f\x98\x80") == 4);
  CHECK(find_invalid_utf8("") == std::string::npos);
  CHECK(find_invalid_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") == std::string::npos);
}

TEST_CASE("what is no UTF-8 is found where it begins", "[utf8]") {
  for (const char* bad : {"\x80", "\xc3", "\xc3x", "\xc0\xaf", "\xe0\x80\xaf", "\xe2\x82", "\xed\xa0\x80",
                          "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    CHECK(find_invalid_utf8(std::string("ab") + bad) == 2);
  }
}
