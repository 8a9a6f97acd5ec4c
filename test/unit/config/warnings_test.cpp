// What a file may say and hardly means.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "config/load.h"
#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

using Lines = std::vector<std::string>;

Lines warnings_after_broker(const std::string& yaml) {
  const Loaded loaded = load_text("broker: { url: amqp://localhost }\n" + yaml, "f");
  CHECK(loaded.errors == Lines{});
  return loaded.warnings;
}

// Of a file with this mode. The path is cut off.
Lines warnings_of_file(const std::string& yaml, mode_t mode) {
  char name[] = "/tmp/bellhop-warnings-XXXXXX";
  const int fd = mkstemp(name);
  REQUIRE(fd >= 0);
  REQUIRE(write(fd, yaml.data(), yaml.size()) == static_cast<ssize_t>(yaml.size()));
  REQUIRE(fchmod(fd, mode) == 0);
  close(fd);
  Loaded loaded = load_file(name);
  std::remove(name);
  CHECK(loaded.errors == Lines{});
  for (std::string& line : loaded.warnings) line = line.substr(sizeof name - 1);
  return loaded.warnings;
}

}  // namespace

TEST_CASE("a step of two pipelines", "[config]") {
  CHECK(
      warnings_after_broker("pipelines:\n  a: { steps: [one, two] }\n  b: { steps: [three, two] }\n") ==
      Lines{
          "f:4:23: pipelines.b.steps[1]: 'two' is also a step of pipeline 'a': a worker before it has to say "
          "which one it means, with the header bellhop-ack or with the pipeline's name as the routing key; "
          "bellhop refuses its hop otherwise"});
  CHECK(warnings_after_broker("pipelines: { a: { steps: [one] }, b: { steps: [two] } }\n").empty());
}

TEST_CASE("a wildcard inside of a word", "[config]") {
  const auto warned = [](const std::string& key) {
    return warnings_after_broker("routes: [{ name: r, match: { routing_key: \"" + key + "\" } }]\n");
  };
  CHECK(
      warned("order#") ==
      Lines{
          "f:2:43: routes[0].match.routing_key: 'order#' is taken as it is written: # stands for other words "
          "only as a word of its own, between dots, as in order.#"});
  CHECK(warned("a.*b.c").at(0).ends_with("as in *.b"));
  CHECK(warned("##").size() == 1);
  for (const char* fine : {"", "#", "*", "order.#", "*.*.x", "a..b", "a.#.b.*"}) CHECK(warned(fine).empty());
}

TEST_CASE("a secret in a file that everybody may read", "[config]") {
  const std::string text =
      "is a secret, and every user of this host may read the file: chmod o-r the file, or "
      "put the secret elsewhere, as in ${file:/run/secrets/x}";
  const std::string password = "broker: { url: amqp://localhost, username: app, password: hunter2 }\n";
  CHECK(warnings_of_file(password, 0644) == Lines{":1:59: broker.password: " + text});
  CHECK(warnings_of_file(password, 0640).empty());
  setenv("BELLHOP_TEST_SECRET", "hunter2", 1);
  for (const char* yaml :
       {"broker: { url: amqp://localhost, username: app, password: \"${BELLHOP_TEST_SECRET}\" }\n",
        "broker: { url: \"amqp://app:${BELLHOP_TEST_SECRET}@localhost\" }\n",
        "broker: { url: amqp://localhost }\n"})
    CHECK(warnings_of_file(yaml, 0644).empty());
  for (const char* yaml :
       {"broker: { url: amqp://app:hunter2@localhost }\n",
        "broker: { url: [\"amqp://app:${NONE:-hunter2}@x\"] }\n",
        "broker: { url: amqp://x }\nlisten: [{ tcp: \"127.0.0.1:1\", users: { app: hunter2 } }]\n",
        "broker: { url: amqp://x }\nstores: { s: { type: s3, bucket: bbb, access_key: a, secret_key: hunter2 "
        "} }\n"}) {
    INFO(yaml);
    const Lines warned = warnings_of_file(yaml, 0644);
    REQUIRE(warned.size() == 1);
    CHECK(warned[0].find("hunter2") == std::string::npos);
  }
}

TEST_CASE("text that is no UTF-8 once expanded", "[config]") {
  setenv("BELLHOP_TEST_BYTES", "a\xff", 1);
  CHECK(load_text("service: ${BELLHOP_TEST_BYTES}\nbroker: { url: amqp://x }\n", "f").errors ==
        Lines{"f:1:10: service: has bytes in it that are no UTF-8 once expanded, allowed: text in UTF-8"});
  // A password is bytes to a broker.
  CHECK(load_text("broker: { url: amqp://x, username: a, password: \"${BELLHOP_TEST_BYTES}\" }\n", "f")
            .errors.empty());
  CHECK(load_text("broker: { url: amqp://x }\nstores: { s: { type: filesystem, path: \"/a\\0b\" } }\n", "f")
            .errors == Lines{"f:2:40: stores.s.path: has a NUL byte in it, allowed: text"});
}

TEST_CASE("a file with very many routes takes a time in proportion, right or wrong", "[config]") {
  std::string pipelines = "pipelines:\n", right = "routes:\n", wrong = "routes:\n";
  for (int i = 0; i < 9000; ++i) {
    const std::string n = std::to_string(i);
    pipelines += " p" + n + ": { steps: [s" + n + "] }\n";
    right += " - { name: r" + n + ", match: { exchange: e" + n + " }, slip: { pipeline: p" + n + " } }\n";
    wrong += " - { name: r" + n + ", slip: { pipeline: x" + n + " } }\n";
  }
  const std::string broker = "broker: { url: amqp://localhost }\n";
  CHECK(load_text(broker + pipelines + right, "f").errors.empty());
  const Lines errors = load_text(broker + pipelines + wrong, "f").errors;
  REQUIRE(errors.size() == 101);
  size_t bytes = 0;
  for (const std::string& line : errors) bytes += line.size();
  CHECK(bytes < 100000);
}
