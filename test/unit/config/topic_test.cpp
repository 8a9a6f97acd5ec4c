#include "config/topic.h"

#include "test/support/catch.h"

using namespace bellhop::config;

namespace {
bool matches(const char* pattern, const std::string& key) {
  return topic_matches(topic_words(pattern), key);
}
}  // namespace

TEST_CASE("a pattern is split at its dots", "[config]") {
  CHECK(topic_words("").empty());
  CHECK(topic_words("a") == std::vector<std::string>{"a"});
  CHECK(topic_words("a.*.#") == std::vector<std::string>{"a", "*", "#"});
  CHECK(topic_words("a.") == std::vector<std::string>{"a", ""});
  CHECK(topic_words(".") == std::vector<std::string>{"", ""});
}

TEST_CASE("without wildcards the key is the pattern", "[config]") {
  CHECK(matches("order.new", "order.new"));
  CHECK(matches("", ""));
  CHECK(matches("a..b", "a..b"));
  for (const char* key :
       {"", "order", "order.new.x", "order.neW", "order.", ".order.new", "ordernew", "order.newer"})
    CHECK_FALSE(matches("order.new", key));
  CHECK_FALSE(matches("", "a"));
}

TEST_CASE("* is exactly one word", "[config]") {
  CHECK(matches("*", "a"));
  CHECK(matches("order.*", "order.new"));
  CHECK(matches("*.new", "order.new"));
  CHECK(matches("a.*.c", "a..c"));
  CHECK_FALSE(matches("*", ""));
  CHECK_FALSE(matches("*", "a.b"));
  CHECK_FALSE(matches("order.*", "order"));
  CHECK_FALSE(matches("order.*", "order.new.x"));
  CHECK_FALSE(matches("ord*", "order"));
}

TEST_CASE("# is any number of words, none too", "[config]") {
  for (const char* key : {"", "a", "a.b", "a.b.c", "."}) CHECK(matches("#", key));
  CHECK(matches("order.#", "order"));
  CHECK(matches("order.#", "order.new.x"));
  CHECK(matches("#.x", "x"));
  CHECK(matches("#.x", "x.y.x"));
  CHECK(matches("a.#.z", "a.z"));
  CHECK(matches("a.#.z", "a.b.z.c.z"));
  CHECK(matches("#.#", ""));
  CHECK(matches("#.*", "a"));
  CHECK(matches("#.*.#", "a.b.c"));
  CHECK(matches("#.a.#.b.#", "x.a.y.a.b"));
  CHECK_FALSE(matches("order.#", "orders.new"));
  CHECK_FALSE(matches("#.x", "x.y"));
  CHECK_FALSE(matches("#.*", ""));
  CHECK_FALSE(matches("#.a.#.b.#", "x.b.y.a"));
}

TEST_CASE("a hostile key does not make matching explode", "[config]") {
  std::string key = "a";
  for (int i = 0; i < 126; ++i) key += ".a";  // 253 bytes, nearly a whole short string
  CHECK_FALSE(matches("#.a.#.a.#.a.#.a.#.a.#.a.#.a.#.a.#.a.#.b", key));
}
