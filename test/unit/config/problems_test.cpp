#include "config/problems.h"

#include "test/support/catch.h"

using namespace bellhop::config;

TEST_CASE("problems come in the file's order, whenever they were found", "[config]") {
  Problems problems;
  CHECK(problems.empty());
  problems.add({7, 1}, "z", "third");
  problems.add({2, 9}, "b", "second");
  problems.add({2, 3}, "a", "first");
  problems.add({7, 1}, "a", "fourth");
  CHECK(problems.lines("f.yaml") == std::vector<std::string>{"f.yaml:2:3: a: first", "f.yaml:2:9: b: second",
                                                             "f.yaml:7:1: z: third",
                                                             "f.yaml:7:1: a: fourth"});
}

TEST_CASE("of very many problems the first are shown, and the others counted", "[config]") {
  Problems problems;
  for (int i = 1; i <= 60000; ++i) {
    problems.add({i, 1}, "k", "wrong");
    problems.warn({i, 1}, "k", "odd");
  }
  const std::vector<std::string> lines = problems.lines("f");
  REQUIRE(lines.size() == 101);
  CHECK(lines[99] == "f:100:1: k: wrong");
  CHECK(lines[100] == "f: 59900 more errors are not shown");
  CHECK(problems.warning_lines("f")[100] == "f: 59900 more warnings are not shown");
}

TEST_CASE("a long list is cut", "[config]") {
  CHECK(listed({"a", "b"}) == "a, b");
  CHECK(listed(std::vector<std::string>(10000, "x")).ends_with(", x and 9970 more"));
}

TEST_CASE("the nearest name is suggested, and none when all are far", "[config]") {
  const std::vector<std::string> names{"store", "threshold", "enabled", "inline_framing", "url"};
  CHECK(nearest("treshold", names) == "threshold");
  CHECK(nearest("sotre", names) == "store");
  CHECK(nearest("stores", names) == "store");
  CHECK(nearest("inline-framing", names) == "inline_framing");
  CHECK(nearest("URL", names) == "");
  CHECK(nearest("retention", names) == "");
  CHECK(nearest("", names) == "");
  CHECK(nearest("ur", names) == "url");
  CHECK(nearest(std::string(1000000, 'x'), names) == "");
}

TEST_CASE("text of the file is shown short and printable", "[config]") {
  CHECK(quoted("a b") == "'a b'");
  CHECK(quoted(std::string("a\n\x1b[1m\0", 7)) == "'a\\x0a\\x1b[1m\\x00'");
  CHECK(quoted(std::string(80, 'x')) == "'" + std::string(80, 'x') + "'");
  CHECK(quoted(std::string(81, 'x')) == "'" + std::string(80, 'x') + "...'");
  CHECK(quoted("\xc3\xa9\xff\xc3") == "'\xc3\xa9\\xff\\xc3'");
  CHECK(quoted(std::string(79, 'x') + "\xc3\xa9") == "'" + std::string(79, 'x') + "...'");
}

TEST_CASE("a key is shown up to where it can be no key any more", "[config]") {
  CHECK(shown_key("x-tenant_1.a/b") == "x-tenant_1.a/b");
  CHECK(shown_key("password:secret") == "password...");
  CHECK(shown_key("") == "");
  CHECK(shown_key(std::string(100, 'x')) == std::string(80, 'x') + "...");
}
