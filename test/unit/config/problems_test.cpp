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
  CHECK(quoted(std::string(81, 'x')) == "'" + std::string(80, 'x') + "...'");
}

TEST_CASE("a key is shown up to where it can be no key any more", "[config]") {
  CHECK(shown_key("x-tenant_1.a/b") == "x-tenant_1.a/b");
  CHECK(shown_key("password:secret") == "password...");
  CHECK(shown_key("") == "");
  CHECK(shown_key(std::string(100, 'x')) == std::string(80, 'x') + "...");
}
