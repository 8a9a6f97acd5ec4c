// Errors of a whole file, and of any key: unknown, twice, of the wrong kind, not expanded.
#include <cstdlib>

#include "test/support/catch.h"
#include "test/unit/config/errors_of.h"

using namespace bellhop::config;

TEST_CASE("a file that cannot be read", "[config]") {
  CHECK(load_file("/nowhere/bellhop.yaml").errors ==
        Lines{"/nowhere/bellhop.yaml: cannot be read: No such file or directory; create or mount it first"});
}

TEST_CASE("an empty file lacks the one key that is required", "[config]") {
  CHECK(errors_of("") == Lines{"f:1:1: broker.url: is missing, allowed: "
                               "amqp://[user:password@]host[:port][/vhost], amqps://... likewise, "
                               "amqp+unix://[user:password@]/path[?vhost=vhost] or a list of them"});
  CHECK(errors_of("broker: { heartbeat: 1s }") ==
        Lines{"f:1:9: broker.url: is missing, allowed: amqp://[user:password@]host[:port][/vhost], "
              "amqps://... likewise, amqp+unix://[user:password@]/path[?vhost=vhost] or a list of them"});
  CHECK(errors_of("- a") == Lines{"f:1:1: file: is a list, allowed: a mapping"});
}

TEST_CASE("the address that a package's file has in the broker's place is to be edited", "[config]") {
  CHECK(errors_of("broker: { url: EDIT-ME }") ==
        Lines{"f:1:16: broker.url: has still to be edited: write your broker's address here, allowed: "
              "amqp://[user:password@]host[:port][/vhost], amqps://... likewise, "
              "amqp+unix://[user:password@]/path[?vhost=vhost]"});
}

TEST_CASE("all errors of a file come at once, in its order", "[config]") {
  CHECK(errors_of(R"(serivce: x
broker:
  url: amqp://localhost
  heartbeat: 30
limits: { sessions: 0, drain_timeout: soon }
claim_check:
  threshold: -1B
  store: nowhere
log: { level: loud }
)") == Lines{"f:1:1: serivce: unknown key (did you mean service?), allowed: service, listen, broker, stores, "
             "claim_check, "
             "stamp, pipelines, routes, slip, consume, limits, admin, log",
             "f:4:14: broker.heartbeat: '30' is not a whole number with a unit, allowed: ms, s, m, h or d "
             "after a whole "
             "number, as in 30s, or 0",
             "f:5:21: limits.sessions: '0' is out of range, allowed: 1 to 1000000",
             "f:5:39: limits.drain_timeout: 'soon' is not a whole number with a unit, allowed: ms, s, m, h "
             "or d after a "
             "whole number, as in 30s, or 0",
             "f:7:14: claim_check.threshold: '-1B' must not be negative, allowed: B, KiB, MiB or GiB after a "
             "whole "
             "number, as in 64KiB, or 0",
             "f:8:10: claim_check.store: 'nowhere' is no configured store, allowed: a store of `stores`, "
             "which has none",
             "f:9:15: log.level: 'loud' is not known, allowed: trace, debug, info, warn, error"});
}

TEST_CASE("keys that this version does not have are unknown keys", "[config]") {
  const auto unknown = [](const std::string& yaml, const std::string& start) {
    const Lines errors = errors_of(yaml);
    REQUIRE(errors.size() == 1);
    INFO(errors[0]);
    CHECK(errors[0].starts_with(start + "unknown key"));
  };
  const std::string broker = "broker: { url: amqp://localhost }\n";
  unknown(broker + "spool: { path: /x }", "f:2:1: spool: ");
  unknown(broker + "stores: { a: { type: memory, retention: 30d } }", "f:2:30: stores.a.retention: ");
  unknown(broker + "routes: [{ name: a, durability: confirm }]", "f:2:21: routes[0].durability: ");
  unknown(broker + "<<: { service: x }", "f:2:1: ...: ");
}

TEST_CASE("an unknown key suggests the nearest, in every section", "[config]") {
  CHECK(errors_after_broker("stores: { a: { type: memory, path: /x } }") ==
        Lines{"f:2:30: stores.a.path: unknown key, allowed: type, keys"});
  CHECK(
      errors_after_broker("stores: { a: { type: filesystem, paht: /x } }") ==
      Lines{
          "f:2:14: stores.a.path: is missing, allowed: a directory's path",
          "f:2:34: stores.a.paht: unknown key (did you mean path?), allowed: type, keys, path, mode, group, "
          "fsync, marker, retention"});
  CHECK(
      errors_after_broker("routes: [{ name: a, match: { routing-key: x } }]") ==
      Lines{
          "f:2:30: routes[0].match.routing-key: unknown key (did you mean routing_key?), allowed: exchange, "
          "routing_key, headers"});
  CHECK(
      errors_after_broker("listen: [{ unix: /x, anonymous: true }]") ==
      Lines{"f:2:22: listen[0].anonymous: unknown key, allowed: unix, mode, group, allow_uids, allow_gids"});
  CHECK(errors_after_broker("listen: [{ tcp: \"localhost:1\", mode: \"0600\" }]") ==
        Lines{"f:2:32: listen[0].mode: unknown key, allowed: tcp, users, anonymous"});
}

TEST_CASE("a key that is there twice", "[config]") {
  CHECK(
      errors_of("broker:\n  url: amqp://a\n  url: amqp://b\nlog: { level: info }\nlog: { level: warn }\n") ==
      Lines{"f:3:3: broker.url: is there twice, allowed: once", "f:5:1: log: is there twice, allowed: once"});
  CHECK(errors_after_broker("stores:\n  a: { type: memory }\n  a: { type: memory }\n") ==
        Lines{"f:4:3: stores.a: is there twice, allowed: once"});
  CHECK(errors_after_broker("pipelines:\n  p: { steps: [a] }\n  p: { steps: [b] }\n") ==
        Lines{"f:4:3: pipelines.p: is there twice, allowed: once"});
  CHECK(errors_after_broker("routes: [{ name: a, headers: { x: 1, x: 2 } }]") ==
        Lines{"f:2:38: routes[0].headers.x: is there twice, allowed: once"});
}

TEST_CASE("a value of the wrong kind", "[config]") {
  CHECK(errors_after_broker("service: [a]\nstores:\nroutes: { a: b }\nlog: info\nclaim_check: { enabled: "
                            "yes, threshold: {} }") ==
        Lines{"f:2:10: service: is a list, allowed: text",
              "f:3:1: stores: is empty, allowed: a mapping of stores, each with its type",
              "f:4:9: routes: is a mapping, allowed: a list of routes, each with its name",
              "f:5:6: log: is a single value, allowed: a mapping",
              "f:6:25: claim_check.enabled: 'yes' is neither, allowed: true, false",
              "f:6:41: claim_check.threshold: is a mapping, allowed: text"});
}

TEST_CASE("YAML that cannot be read is reported in the same form", "[config]") {
  CHECK(errors_of("broker: { url: amqp://localhost\nlog: {}\n") ==
        Lines{"f:2:4: yaml: not valid YAML (end of map flow not found), allowed: YAML 1.2; text with special "
              "characters "
              "needs quotes"});
}

TEST_CASE("a variable or file that is not there is named", "[config]") {
  unsetenv("BELLHOP_TEST_NONE");
  CHECK(errors_of("broker: { url: amqp://a, username: \"${BELLHOP_TEST_NONE}\", password: "
                  "\"${file:/nowhere/p}\" }") ==
        Lines{"f:1:36: broker.username: environment variable BELLHOP_TEST_NONE is not set, allowed: a set "
              "one, or a "
              "default as in ${BELLHOP_TEST_NONE:-default}",
              "f:1:70: broker.password: file '/nowhere/p' cannot be read: No such file or directory; create "
              "or mount it first"});
}

TEST_CASE("an expanded value is not shown", "[config]") {
  setenv("BELLHOP_TEST_SECRET", "hunter2", 1);
  CHECK(errors_after_broker("limits: { sessions: \"${BELLHOP_TEST_SECRET}\" }") ==
        Lines{"f:2:21: limits.sessions: '${BELLHOP_TEST_SECRET}' once expanded is not a whole number, "
              "allowed: 1 to "
              "1000000"});
}
