#include "config/yaml_tree.h"

#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

std::vector<std::string> problems_of(const std::string& yaml) {
  Problems problems;
  YamlNode root;
  const bool parsed = parse_yaml(yaml, root, problems);
  CHECK(parsed == problems.empty());
  return problems.lines("f");
}

}  // namespace

TEST_CASE("a tree keeps places, order and duplicate keys", "[config]") {
  Problems problems;
  YamlNode root;
  REQUIRE(parse_yaml("a: 1\nb:\n  - x\n  - {c: \"y\"}\na:\n", root, problems));
  REQUIRE(root.kind == YamlNode::Kind::mapping);
  REQUIRE(root.entries.size() == 3);
  CHECK(root.entries[0].key == "a");
  CHECK(root.entries[0].value.text == "1");
  CHECK(root.entries[0].value.place.line == 1);
  CHECK(root.entries[0].value.place.column == 4);
  const YamlNode& list = root.entries[1].value;
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[1].entries.at(0).value.text == "y");
  CHECK(list.items[1].entries.at(0).place.line == 4);
  CHECK(list.items[1].entries.at(0).place.column == 6);
  CHECK(root.entries[2].key == "a");
  CHECK(root.entries[2].value.kind == YamlNode::Kind::null);
  CHECK(root.entries[2].place.line == 5);
}

TEST_CASE("an empty document is an empty mapping", "[config]") {
  for (const char* yaml : {"", "# nothing\n", "---\n", "~"}) {
    Problems problems;
    YamlNode root;
    REQUIRE(parse_yaml(yaml, root, problems));
    CHECK(root.kind == YamlNode::Kind::mapping);
    CHECK(root.entries.empty());
  }
}

TEST_CASE("text that is not YAML is one problem at its place", "[config]") {
  const std::string allowed = "), allowed: YAML 1.2; text with special characters needs quotes";
  CHECK(problems_of("a: [1, 2\nb: 3\n") ==
        std::vector<std::string>{"f:2:2: yaml: not valid YAML (end of sequence flow not found" + allowed});
  CHECK(problems_of("a: 1\n\tb: 2\n").size() == 1);
  for (const char* yaml : {"a: \"x", "a: \"x\n", "a: 'x\n"}) {
    INFO(yaml);
    const std::vector<std::string> found = problems_of(yaml);
    REQUIRE(found.size() == 1);
    CHECK(found[0].find("yaml: not valid YAML (a quote is not closed" + allowed) != std::string::npos);
  }
  CHECK(problems_of("a: 1\n---\nb: 2\n") ==
        std::vector<std::string>{"f:3:1: yaml: a second document, allowed: one"});
  CHECK(problems_of("{[a]: 1}") ==
        std::vector<std::string>{"f:1:2: yaml: a key that is no text, allowed: plain or quoted text"});
}

TEST_CASE("a password that YAML reads as an alias is not shown", "[config]") {
  CHECK(problems_of("password: *hunter2\n") ==
        std::vector<std::string>{
            "f:1:11: yaml: not valid YAML (the referenced anchor is not defined), allowed: YAML "
            "1.2; text with special characters needs quotes"});
}

TEST_CASE("aliases cannot make a small file large, or endless", "[config]") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 0; j < 9; ++j) bomb += ", " + last;
    bomb += "]\n";
  }
  CHECK(problems_of(bomb).size() == 1);
  CHECK(problems_of("a: &a [*a]\n").size() == 1);
  CHECK(problems_of(std::string(100000, '[')).size() == 1);
}

TEST_CASE("an alias is what it stands for, as a value and as a key", "[config]") {
  Problems problems;
  YamlNode root;
  REQUIRE(parse_yaml("a: &x [1, {b: &y 2}]\n&k c: *x\nd: *y\n*k : 3\n", root, problems));
  REQUIRE(root.entries.size() == 4);
  const YamlNode& copy = root.entries[1].value;
  REQUIRE(copy.items.size() == 2);
  CHECK(copy.items[1].entries.at(0).value.text == "2");
  CHECK(copy.items[1].place.line == 1);
  CHECK(root.entries[2].value.text == "2");
  CHECK(root.entries[3].key == "c");
}

TEST_CASE("quoted and empty values are what they were", "[config]") {
  Problems problems;
  YamlNode root;
  REQUIRE(
      parse_yaml("a: \"null\"\nb: null\nc: ''\nd: !tag x\ne: |\n  two\n  lines\nf: []\n", root, problems));
  CHECK(root.entries[0].value.text == "null");
  CHECK(root.entries[0].value.kind == YamlNode::Kind::scalar);
  CHECK(root.entries[1].value.kind == YamlNode::Kind::null);
  CHECK(root.entries[2].value.kind == YamlNode::Kind::scalar);
  CHECK(root.entries[3].value.text == "x");
  CHECK(root.entries[4].value.text == "two\nlines\n");
  CHECK(root.entries[5].value.kind == YamlNode::Kind::sequence);
}

TEST_CASE("what is nested too deep or too large is refused at once", "[config]") {
  for (const std::string& yaml : {"a: " + std::string(200000, '['), std::string(200000, '{'),
                                  [] {
                                    std::string deep;
                                    for (int i = 0; i < 400000; ++i) deep += "- ";
                                    return deep;
                                  }(),
                                  [] {
                                    std::string many = "a:\n";
                                    for (int i = 0; i < 200000; ++i) many += " - x\n";
                                    return many;
                                  }(),
                                  std::string("a: &a [&b [&c [*a]]]\n"), std::string("&a {*a : 1}\n")}) {
    const std::vector<std::string> found = problems_of(yaml);
    REQUIRE(found.size() == 1);
    // An endless row of open brackets is a key's beginning to yaml-cpp.
    CHECK((found[0].find("nested too deep") != std::string::npos ||
           found[0].find("a key that is no text") != std::string::npos));
  }
  CHECK(problems_of("- - - - - x\n").empty());
}

TEST_CASE("a tab in front of a key, and an expansion in braces, get words of their own", "[config]") {
  for (const char* yaml : {"broker:\n\turl: x\n", "a:\n  - b: c\n\t  d: e\n", "a:\n \t b: c\n"}) {
    INFO(yaml);
    const std::vector<std::string> found = problems_of(yaml);
    REQUIRE(found.size() == 1);
    CHECK(found[0].find("a line begins with a tab), allowed: blanks") != std::string::npos);
  }
  for (const char* yaml : {"a: { b: ${X} }\n", "a: [${X:-1}]\n", "a: [amqp://${X}/, b]\n",
                           "a: { b: c,\n  d: ${file:/x} }\n", "a: { \xc3\xa9: ${X} }\n"}) {
    INFO(yaml);
    const std::vector<std::string> found = problems_of(yaml);
    REQUIRE(found.size() == 1);
    CHECK(found[0].find("(${ inside of braces or brackets, without quotes), allowed: \"${NAME}\"") !=
          std::string::npos);
  }
  CHECK(problems_of("a:\tb # a tab\there\nc: ${X}\nd: { e: \"${X}\" }\n").empty());
}

TEST_CASE("a file that is no UTF-8, or has control characters, is told where", "[config]") {
  CHECK(problems_of("a: 1\n\xc3\xa9: \xff\n") ==
        std::vector<std::string>{"f:2:4: yaml: the byte 0xff, which is no UTF-8, allowed: text in UTF-8"});
  CHECK(problems_of(std::string("a: \0b\n", 7)) ==
        std::vector<std::string>{"f:1:4: yaml: the byte 0x00, a control character, allowed: text in UTF-8"});
  CHECK(problems_of("a: b\xed\xa0\x80\n").size() == 1);
  CHECK(problems_of("\xef\xbb\xbf"
                    "a: 1\r\n")
            .empty());
}
