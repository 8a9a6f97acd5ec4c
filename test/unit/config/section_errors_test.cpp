// Errors of each section's own keys, section by section.
#include "test/support/catch.h"
#include "test/unit/config/errors_of.h"

using namespace bellhop::config;

TEST_CASE("broker: URLs", "[config]") {
  const std::string form =
      ", allowed: amqp://[user:password@]host[:port][/vhost], amqps://... likewise, "
      "amqp+unix://[user:password@]/path[?vhost=vhost]";
  CHECK(errors_of("broker: { url: \"amqpx://app:hunter2@a\" }") ==
        Lines{"f:1:16: broker.url: is no broker's URL" + form});
  CHECK(
      errors_of("broker:\n  url:\n    - amqp://a\n    - amqp+unix://run/x\n    - amqp://b?x=y\n") ==
      Lines{
          "f:4:7: broker.url[1]: has something else than user:password@ before its path" + form,
          "f:5:7: broker.url[2]: has a ? or # in it (in a user, password, path or vhost they are written %3F "
          "and %23)" +
              form});
  CHECK(errors_of("broker: { url: [] }") == Lines{"f:1:16: broker.url: is an empty list" + form});
  CHECK(errors_of("broker: { url: }") == Lines{"f:1:11: broker.url: is empty, allowed: text"});
}

TEST_CASE("broker: credentials stand in one place and are whole", "[config]") {
  CHECK(errors_of("broker: { url: amqp://a, username: app }") ==
        Lines{"f:1:36: broker.username: stands without broker.password, allowed: both or none"});
  CHECK(errors_of("broker: { url: amqp://a, password: hunter2 }") ==
        Lines{"f:1:36: broker.password: stands without broker.username, allowed: both or none"});
  CHECK(errors_of("broker: { url: amqp://a, username: app, password: \"\" }") ==
        Lines{"f:1:51: broker.password: is empty while the other of username and password is not, allowed: "
              "both or none"});
  CHECK(
      errors_of("broker: { url: \"amqp://a:hunter2@h\", username: app, password: hunter2 }") ==
      Lines{"f:1:48: broker.username: stands beside a user:password in broker.url, allowed: one of the two"});
  CHECK(errors_of("broker: { url: [\"amqp://a:hunter2@h\", amqp://b] }") ==
        Lines{"f:1:39: broker.url[1]: and the URL before it do not agree on having a user:password, allowed: "
              "all or none"});
}

TEST_CASE("broker: virtual hosts and times", "[config]") {
  CHECK(
      errors_of("broker: { url: amqp://a/v, vhosts: [], vhost_map: { a: \"\" }, heartbeat: 1500ms }") ==
      Lines{
          "f:1:36: broker.vhosts: is an empty list, allowed: at least one virtual host; without the key, any",
          "f:1:51: broker.vhost_map: stands beside a virtual host in broker.url, which every client gets, "
          "allowed: "
          "one of the two",
          "f:1:56: broker.vhost_map.a: is empty, allowed: a virtual host's name; the default one is \"/\"",
          "f:1:73: broker.heartbeat: '1500ms' is not in whole seconds, allowed: 0 (off) or whole seconds"});
  CHECK(errors_of("broker: { url: amqp://a, heartbeat: 65536s, connect_timeout: 0 }") ==
        Lines{"f:1:37: broker.heartbeat: '65536s' is out of range, allowed: 0 to 65535s",
              "f:1:62: broker.connect_timeout: '0' is out of range, allowed: 1ms to 49d"});
}

TEST_CASE("connect_timeout is below handshake_timeout", "[config]") {
  CHECK(errors_of("broker: { url: amqp://a, connect_timeout: 10s }") ==
        Lines{"f:1:43: broker.connect_timeout: is 10s, allowed: less than limits.handshake_timeout (10s)"});
  CHECK(errors_of("broker: { url: amqp://a, connect_timeout: 2m }\nlimits: { handshake_timeout: 90s }") ==
        Lines{"f:1:43: broker.connect_timeout: is 2m, allowed: less than limits.handshake_timeout (90s)"});
  CHECK(errors_after_broker("limits: { handshake_timeout: 5s }") ==
        Lines{"f:2:30: limits.handshake_timeout: is 5s, allowed: more than broker.connect_timeout (8s)"});
}

TEST_CASE("listen: one of unix and tcp an entry", "[config]") {
  CHECK(errors_after_broker("listen: []") ==
        Lines{"f:2:9: listen: is an empty list, allowed: at least one entry; without the key, unix: "
              "/run/bellhop/bellhop.sock"});
  CHECK(
      errors_after_broker("listen:\n  - mode: \"0600\"\n  - { unix: /a, tcp: localhost:1 }\n  - /run/x\n") ==
      Lines{"f:3:5: listen[0]: has neither unix nor tcp, allowed: one of the two",
            "f:4:5: listen[1]: has both unix and tcp, allowed: one of the two, a list entry each",
            "f:5:5: listen[2]: is a single value, allowed: a mapping"});
  CHECK(errors_after_broker(
            "listen: [{ unix: /a }, { unix: /a }, { tcp: \"[::1]:5\" }, { tcp: \"[::1]:5\" }]") ==
        Lines{"f:2:32: listen[1].unix: is listened on twice, allowed: once",
              "f:2:65: listen[3].tcp: is listened on twice, allowed: once"});
}

TEST_CASE("listen: Unix sockets", "[config]") {
  CHECK(errors_after_broker("listen: [{ unix: /" + std::string(106, 'x') + " }]").empty());
  CHECK(errors_after_broker("listen: [{ unix: /" + std::string(107, 'x') + " }]") ==
        Lines{"f:2:18: listen[0].unix: has 108 bytes, allowed: at most 107, which is all that the kernel "
              "takes for a "
              "socket's path"});
  CHECK(
      errors_after_broker("listen: [{ unix: /x, mode: rw, allow_uids: [], allow_gids: [app] }]") ==
      Lines{
          "f:2:28: listen[0].mode: 'rw' is not a file mode, allowed: octal digits in quotes from \"0000\" to "
          "\"0777\", as in \"0660\"",
          "f:2:44: listen[0].allow_uids: is an empty list, allowed: at least one id; without the key, "
          "everybody whom "
          "the mode lets in",
          "f:2:61: listen[0].allow_gids[0]: 'app' is not a whole number, allowed: 0 to 4294967294"});
}

TEST_CASE("listen: TCP is for this host unless users are named", "[config]") {
  const std::string form = ", allowed: host:port, as in 127.0.0.1:5673 or [::1]:5673";
  CHECK(errors_after_broker("listen: [{ tcp: localhost }, { tcp: \"::1\" }]") ==
        Lines{"f:2:17: listen[0].tcp: 'localhost' has no port" + form,
              "f:2:37: listen[1].tcp: '::1' has more than one colon, an IPv6 address stands in brackets as "
              "in [::1]" +
                  form});
  const std::string remote =
      "can be reached from other hosts, allowed: a loopback address (127.0.0.1, [::1], localhost), or "
      "`users` with it";
  CHECK(errors_after_broker("listen: [{ tcp: \"0.0.0.0:1\" }]") ==
        Lines{"f:2:17: listen[0].tcp: '0.0.0.0:1' " + remote});
  CHECK(errors_after_broker("listen: [{ tcp: \"[::]:1\", anonymous: true }]") ==
        Lines{"f:2:17: listen[0].tcp: '[::]:1' " + remote});
  CHECK(errors_after_broker("listen: [{ tcp: \"rabbit:1\" }]") ==
        Lines{"f:2:17: listen[0].tcp: 'rabbit:1' " + remote});
}

TEST_CASE("listen: TCP does not lend out the broker's credentials unasked", "[config]") {
  const std::string broker = "broker: { url: \"amqp://u:p@h\" }\n";
  CHECK(errors_of(broker + "listen: [{ tcp: \"localhost:1\" }]") ==
        Lines{"f:2:17: listen[0].tcp: lets everybody in as the broker's user, because the configuration has "
              "the broker's "
              "credentials, allowed: `users` or `anonymous: true` with it"});
  CHECK(errors_of(broker + "listen: [{ tcp: \"localhost:1\", anonymous: true }]").empty());
  CHECK(errors_of(broker + "listen: [{ tcp: \"localhost:1\", users: { a: b } }]").empty());
}

TEST_CASE("listen: users have passwords, which are not shown", "[config]") {
  CHECK(errors_after_broker("listen: [{ tcp: \"localhost:1\", users: { app:hunter2, b: \"\", c: [hunter2] }, "
                            "anonymous: true }]") ==
        Lines{"f:2:41: listen[0].users.app...: is empty, allowed: text",
              "f:2:57: listen[0].users.b: the password is empty, allowed: a password",
              "f:2:64: listen[0].users.c: is a list, allowed: text",
              "f:2:88: listen[0].anonymous: stands beside users, allowed: one of the two"});
  CHECK(errors_after_broker("listen: [{ tcp: \"localhost:1\", users: {} }]") ==
        Lines{"f:2:39: listen[0].users: is empty, allowed: at least one user and password"});
}

TEST_CASE("stores", "[config]") {
  CHECK(errors_after_broker(
            "stores:\n  a: { path: /x }\n  b: { type: s4, bucket: x }\n  _c: { type: memory }\n  d: { type: "
            "filesystem, path: \"\", mode: 640, marker: maybe }\nclaim_check: { store: b }\n") ==
        Lines{"f:3:6: stores.a.type: is missing, allowed: filesystem, s3, memory",
              "f:4:14: stores.b.type: 's4' is not known, allowed: filesystem, s3, memory",
              "f:5:7: stores._c: is no store's name, allowed: 1 to 128 letters, digits, '.', '_', '-', a "
              "letter or digit "
              "first",
              "f:6:32: stores.d.path: is empty, allowed: a directory's path",
              "f:6:55: stores.d.marker: 'maybe' is not known, allowed: required, optional"});
}

TEST_CASE("claim_check: with several stores one is named", "[config]") {
  const std::string stores = "stores: { a: { type: memory }, b: { type: memory } }\n";
  CHECK(errors_after_broker(stores) ==
        Lines{"f:1:1: claim_check.store: is missing with more than one store configured, "
              "allowed: a, b; or enabled: false"});
  CHECK(errors_after_broker(stores + "claim_check: { threshold: 1KiB }") ==
        Lines{"f:3:14: claim_check.store: is missing with more than one store configured, allowed: a, b; or "
              "enabled: false"});
  CHECK(errors_after_broker(
            stores + "claim_check: { store: c }\nroutes: [{ name: x, claim_check: { threshold: 1B } }]") ==
        Lines{"f:3:23: claim_check.store: 'c' is no configured store, allowed: a, b"});
  CHECK(errors_after_broker(
            stores +
            "claim_check: { enabled: false }\nroutes: [{ name: x, claim_check: { enabled: true } }]") ==
        Lines{"f:4:34: routes[0].claim_check.store: is missing with more than one store configured, allowed: "
              "a, b; or "
              "enabled: false"});
}

TEST_CASE("stamp and consume", "[config]") {
  CHECK(errors_after_broker(
            "stamp: { delivery_mode: 2, message_id: new, envelope: true }\nconsume: { undeliverable: drop, "
            "hold_max: 50d }") ==
        Lines{"f:2:25: stamp.delivery_mode: '2' is not known, allowed: persistent, transient, keep",
              "f:2:40: stamp.message_id: 'new' is not known, allowed: fill, keep",
              "f:2:55: stamp.envelope: 'true' is not known, allowed: none, acemq",
              "f:3:27: consume.undeliverable: 'drop' is not known, allowed: park, reject",
              "f:3:43: consume.hold_max: '50d' is out of range, allowed: 0 to 49d"});
  CHECK(errors_after_broker("stores: { a: { type: memory, keys: some } }\nconsume: { stores: [a, b] }") ==
        Lines{"f:2:36: stores.a.keys: 'some' is not known, allowed: issued, any",
              "f:3:24: consume.stores[1]: 'b' is no configured store, allowed: a"});
  // Not "none", and not "all" either.
  CHECK(errors_after_broker("stores: { a: { type: memory } }\nconsume: { stores: [] }") ==
        Lines{"f:3:20: consume.stores: is empty, allowed: one or more names of `stores`"});
}

TEST_CASE("pipelines", "[config]") {
  const std::string long_step(250, 's');
  CHECK(
      errors_after_broker("pipelines:\n  a: {}\n  b: { steps: [] }\n  c: { steps: [x, \"y,z\", x, \" a\"] "
                          "}\n  amq.d: { steps: "
                          "[x], declare: true }\n  bellhop.next: { steps: [x] }\n  abcde: { steps: [" +
                          long_step + "] }\n") ==
      Lines{"f:3:6: pipelines.a.steps: is missing, allowed: a list of step names",
            "f:4:15: pipelines.b.steps: a routing slip needs at least one step",
            "f:5:19: pipelines.c.steps[1]: 'y,z' is no step's name, allowed: UTF-8 without a comma, control "
            "characters or outer blanks",
            "f:5:26: pipelines.c.steps[2]: 'x' is there twice, allowed: once in a pipeline",
            "f:5:29: pipelines.c.steps[3]: ' a' is no step's name, allowed: UTF-8 without a comma, control "
            "characters or outer blanks",
            "f:6:10: pipelines.amq.d: declares an exchange whose name starts with amq., which the broker "
            "keeps for "
            "itself, allowed: another name or declare: false",
            "f:7:17: pipelines.bellhop.next: 'bellhop.next' exists only in bellhop, allowed: an exchange "
            "of the broker",
            "f:8:20: pipelines.abcde.steps[0]: makes a queue's name (pipeline.step) of 256 bytes, allowed: "
            "at most 255"});
}

TEST_CASE("pipelines: a slip that could not start is refused here", "[config]") {
  std::string many = "pipelines: { p: { steps: [s0";
  for (int i = 1; i < 65; ++i) many += ", s" + std::to_string(i);
  CHECK(errors_after_broker(many + "] } }") ==
        Lines{"f:2:26: pipelines.p.steps: a routing slip of 65 steps: at most 64 are allowed"});
  std::string wide = "pipelines: { p: { steps: [";
  for (int i = 0; i < 64; ++i) wide += (i ? ", s" : "s") + std::to_string(100 + i) + std::string(130, 'x');
  CHECK(errors_after_broker(wide + "] } }") ==
        Lines{"f:2:26: pipelines.p.steps: a routing slip of 8639 bytes: at most 8192 are allowed"});
}

TEST_CASE("routes: names", "[config]") {
  CHECK(errors_after_broker(
            "routes:\n  - { match: { exchange: a } }\n  - name: \"\"\n  - name: x\n  - name: x\n  - name: " +
            std::string(256, 'n') + "\n") ==
        Lines{"f:3:5: routes[0].name: is missing, allowed: a name that no other route has",
              "f:4:11: routes[1].name: is empty, allowed: a name of 1 to 255 bytes",
              "f:6:11: routes[3].name: 'x' is the name of an earlier route, allowed: a name that no other "
              "route has",
              "f:7:11: routes[4].name: has 256 bytes, allowed: at most 255"});
}

TEST_CASE("routes: headers that may not be added or matched", "[config]") {
  const std::string longest(255, 'h');
  CHECK(errors_after_broker("routes: [{ name: a, match: { headers: { " + longest +
                            ": x, bellhop-expiration: x } }, headers: { " + longest + ": x } }]")
            .empty());
  CHECK(errors_after_broker(
            "routes:\n  - name: a\n    match: { headers: { bellhop-claim-key: x, b: } }\n    headers:\n      "
            "\"\": x\n      bellhop-ack: 1\n      x-acemq-route: x\n      c: [1]\n      " +
            longest + "h: x\n") ==
        Lines{"f:4:44: routes[0].match.headers.bellhop-claim-key: is a header that bellhop writes itself, "
              "allowed: names "
              "that do not start with bellhop-claim-",
              "f:4:47: routes[0].match.headers.b: is empty, allowed: text",
              "f:6:11: routes[0].headers.: the header's name is empty, allowed: 1 to 255 bytes",
              "f:7:20: routes[0].headers.bellhop-ack: is a header that bellhop writes itself, allowed: names "
              "that do not "
              "start with bellhop-",
              "f:8:22: routes[0].headers.x-acemq-route: is a routing slip's header, allowed: another header; "
              "`slip` starts "
              "a slip",
              "f:9:10: routes[0].headers.c: is a list, allowed: text",
              "f:10:265: routes[0].headers." + std::string(80, 'h') +
                  "...: the header's name has 256 bytes, allowed: at most 255"});
}

TEST_CASE("routes: where a message goes", "[config]") {
  CHECK(errors_after_broker(R"(pipelines: { p: { steps: [s] } }
routes:
  - { name: a, to: {} }
  - { name: b, to: { exchange: bellhop.next } }
  - { name: c, to: { exchange: e }, slip: { pipeline: p } }
  - { name: d, slip: {} }
  - { name: e, slip: { pipeline: p, itinerary: [{ exchange: e }] } }
  - { name: f, slip: { pipeline: q } }
  - { name: g, slip: p }
)") == Lines{"f:4:20: routes[0].to: is empty, allowed: exchange, routing_key or both",
             "f:5:32: routes[1].to.exchange: 'bellhop.next' exists only in bellhop, allowed: an exchange of "
             "the broker",
             "f:6:20: routes[2].to: stands beside slip, which sends the message to its own first step, "
             "allowed: one of the "
             "two",
             "f:7:22: routes[3].slip: has neither pipeline nor itinerary, allowed: one of the two",
             "f:8:22: routes[4].slip: has both pipeline and itinerary, allowed: one of the two",
             "f:9:34: routes[5].slip.pipeline: 'q' is no configured pipeline, allowed: p",
             "f:10:22: routes[6].slip: is a single value, allowed: a mapping"});
  CHECK(errors_after_broker("routes: [{ name: a, slip: { pipeline: q } }]") ==
        Lines{"f:2:39: routes[0].slip.pipeline: 'q' is no configured pipeline, allowed: a pipeline of "
              "`pipelines`, which "
              "has none"});
}

TEST_CASE("routes: itineraries", "[config]") {
  CHECK(errors_after_broker(R"(routes:
  - { name: a, slip: { itinerary: [] } }
  - { name: b, slip: { itinerary: [{ routing_key: k }, { exchange: "" }, x, { exchange: e, key: k }] } }
)") == Lines{"f:3:35: routes[0].slip.itinerary: an itinerary needs at least one stop",
             "f:4:36: routes[1].slip.itinerary[0].exchange: is missing, allowed: an exchange's name; the "
             "default exchange "
             "is \"\"",
             "f:4:56: routes[1].slip.itinerary[1].routing_key: is missing, allowed: a queue's name, which is "
             "what the "
             "default exchange sends by",
             "f:4:74: routes[1].slip.itinerary[2]: is a single value, allowed: a mapping",
             "f:4:92: routes[1].slip.itinerary[3].key: unknown key, allowed: exchange, routing_key, name"});
  std::string long_names = "routes: [{ name: a, slip: { itinerary: [";
  for (int i = 0; i < 64; ++i)
    long_names += std::string(i ? ", " : "") + "{ exchange: e, name: " + std::string(600, 'n') + " }";
  const Lines errors = errors_after_broker(long_names + "] } }]");
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].starts_with("f:2:40: routes[0].slip.itinerary: an itinerary that takes "));
}

TEST_CASE("slip: allowed exchanges", "[config]") {
  CHECK(errors_after_broker("slip: { allowed_exchanges: [a, bellhop.route, [b]] }") ==
        Lines{"f:2:32: slip.allowed_exchanges[1]: 'bellhop.route' exists only in bellhop, allowed: an "
              "exchange of the "
              "broker",
              "f:2:47: slip.allowed_exchanges[2]: is a list, allowed: text"});
}

TEST_CASE("limits", "[config]") {
  CHECK(errors_after_broker(
            "limits: { channels_per_session: 65535, transfers_per_session: many, message_bytes: 0, "
            "inflight_bytes: 32MB }") ==
        Lines{"f:2:33: limits.channels_per_session: '65535' is out of range, allowed: 1 to 65534",
              "f:2:63: limits.transfers_per_session: 'many' is not a whole number, allowed: 1 to 65535",
              "f:2:84: limits.message_bytes: '0' is out of range, allowed: at least 1B",
              "f:2:103: limits.inflight_bytes: '32MB' is not a whole number with a unit, allowed: B, KiB, "
              "MiB or GiB after "
              "a whole number, as in 64KiB, or 0"});
}
