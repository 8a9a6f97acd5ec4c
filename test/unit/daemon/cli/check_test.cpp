#include "daemon/cli/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "test/support/catch.h"

using bellhop::check;

namespace {

struct Checked {
  int code = -1;
  std::string out, err, file;
};

Checked checked(const std::string& yaml) {
  char name[] = "/tmp/bellhop-check-XXXXXX";
  const int fd = mkstemp(name);
  REQUIRE(fd >= 0);
  REQUIRE(write(fd, yaml.data(), yaml.size()) == static_cast<ssize_t>(yaml.size()));
  close(fd);
  std::ostringstream out, err;
  Checked result;
  result.code = check(name, false, out, err);
  std::remove(name);
  result.out = out.str();
  result.err = err.str();
  result.file = name;
  return result;
}

}  // namespace

TEST_CASE("check prints an S3 store without its secrets", "[cli][s3]") {
  const Checked result = checked(R"(
broker: { url: amqp://localhost }
stores:
  one: { type: s3, endpoint: "https://s3.example:9000", region: eu-west-1, bucket: claims, prefix: orders/,
         access_key: hunter2, secret_key: hunter2, session_token: hunter2, sse: "aws:kms:key-1", probe: false }
  two: { type: s3, bucket: others, path_style: false, sse: AES256, timeout: 5s, retries: 0 }
claim_check: { store: one }
)");
  CHECK(result.code == 0);
  CHECK(result.out.find("hunter2") == std::string::npos);
  CHECK(result.out.find(
            "stores        one: s3 bucket 'claims' at https://s3.example:9000, region 'eu-west-1', prefix "
            "'orders/', "
            "path style, credentials of this file, encrypted with aws:kms key 'key-1', timeout 30s, 5 "
            "retries, not "
            "probed\n"
            "              two: s3 bucket 'others' at AWS, virtual host style, credentials of the "
            "environment or the "
            "shared credentials file, encrypted with AES256, timeout 5s, 0 retries, probed at start\n") !=
        std::string::npos);
}

TEST_CASE("check prints what a file means", "[cli]") {
  const Checked result = checked(R"(
service: orders-api
listen:
  - unix: /nowhere/x.sock
    group: app
    allow_uids: [1000, 1001]
  - { tcp: "127.0.0.1:5673", users: { app: hunter2, web: hunter2 } }
  - { tcp: "[::1]:5673", anonymous: true }
broker: { url: ["amqp://app:hunter2@one", "amqp://web:hunter2@two:5673/prod"], vhosts: [prod] }
stores:
  claims: { type: filesystem, path: /nowhere/claims }
  scratch: { type: memory }
claim_check: { store: claims }
pipelines:
  fulfilment: { steps: [validate, reserve], declare: true }
routes:
  - name: orders
    match: { exchange: orders, routing_key: "order.#", headers: { region: eu } }
    slip: { pipeline: fulfilment }
    claim_check: { store: scratch, threshold: 0 }
    headers: { x-key: hunter2 }
    stamp: { envelope: acemq, message_id: keep, delivery_mode: keep }
  - name: stops
    match: { exchange: "" }
    slip: { itinerary: [{ exchange: e, routing_key: k, name: n }, { exchange: "", routing_key: q }] }
  - name: audit
    to: { routing_key: all }
    claim_check: { enabled: false, already_framed: pass }
  - name: late
    to: { exchange: late }
    claim_check: { inline_framing: always }
)");
  CHECK(result.err == "");
  CHECK(result.code == 0);
  CHECK(result.out ==
        R"(service       orders-api
listen        unix socket '/nowhere/x.sock', mode 0660, group 'app', for uids 1000, 1001
              tcp 127.0.0.1:5673, for users 'app', 'web'
              tcp [::1]:5673, for everybody who reaches it
broker        amqp://one:5672 as user 'app'
              amqp://two:5673/prod as user 'web', virtual host 'prod' for every client
              clients may open virtual hosts 'prod'
              heartbeat 30s, connect_timeout 8s
stores        claims: filesystem '/nowhere/claims', mode 0640, fsync, marker required
              scratch: memory, gone when bellhop ends
route         'orders' matches exchange 'orders', routing key 'order.#', header 'region' = 'eu'
                starts a slip through pipeline 'fulfilment' (validate, reserve)
                every body goes to store 'scratch', already framed ones are escaped
                delivery mode as it is, message id as it is, acemq envelope
                adds when absent 'x-key'
route         'stops' matches the default exchange
                starts an itinerary: n: exchange 'e' key 'k'; the default exchange key 'q'
                bodies of 64KiB and more go to store 'claims', smaller ones are sent raw, already framed ones are escaped
                delivery mode persistent when unset, message id filled in when unset
route         'audit' matches every publish
                goes to the client's exchange, key 'all'
                no body is offloaded, all are sent raw, already framed ones are left as they are
                delivery mode persistent when unset, message id filled in when unset
route         'late' matches every publish (never reached, but by name)
                goes to exchange 'late', the client's key
                bodies of 64KiB and more go to store 'claims', smaller ones are framed, already framed ones are escaped
                delivery mode persistent when unset, message id filled in when unset
other         publishes that no route matches go where the client sends them
                bodies of 64KiB and more go to store 'claims', smaller ones are sent raw, already framed ones are escaped
                delivery mode persistent when unset, message id filled in when unset
pipeline      'fulfilment': validate, reserve; declared at the broker
slip          a carried itinerary may send a message to exchange 'fulfilment', exchange 'orders', exchange 'e', exchange 'late'; to queues by the default exchange only when slip.allowed_exchanges lists ""
consume       a message that cannot be delivered is parked; a delivery waits up to 10m for an unavailable store
limits        256 sessions, 128 of TCP, 2047 channels each, 16 transfers each
              messages of up to 4GiB, 32MiB of bodies in memory
              handshake_timeout 10s, drain_timeout 20s
admin         unix socket '/nowhere/admin.sock', mode 0600, for everything
              this file is read at start only
log           info, text
warnings      the itinerary of route 'stops' goes on to the default exchange, which slip.allowed_exchanges does not have: hops to it are refused; add "" to slip.allowed_exchanges
              store 'claims': '/nowhere/claims' is not there: mount or create it before bellhop starts (bellhop does not, because a missing folder is mostly a missing mount)
              socket '/nowhere/x.sock': its folder '/nowhere' is not there: create it before bellhop starts, writable for bellhop's user
)");
  CHECK(result.out.find("hunter2") == std::string::npos);
}

TEST_CASE("check says that without a store nothing is offloaded, and whose credentials are used", "[cli]") {
  const Checked result = checked("broker: { url: amqp://localhost }\nlisten: [{ tcp: \"localhost:1\" }]\n");
  CHECK(result.code == 0);
  CHECK(result.out.find("listen        tcp localhost:1, for whom the broker lets in\n") != std::string::npos);
  CHECK(result.out.find("broker        amqp://localhost:5672 with each client's own credentials\n") !=
        std::string::npos);
  CHECK(result.out.find("stores        none\n") != std::string::npos);
  CHECK(result.out.find("no body is offloaded (there is no store), all are sent raw") != std::string::npos);
  CHECK(result.out.find("slip          a carried itinerary may send a message nowhere; ") !=
        std::string::npos);
}

TEST_CASE("check says when a pipeline cannot be declared", "[cli]") {
  const Checked result = checked(
      "broker: { url: amqp://localhost }\npipelines: { p: { steps: [a], declare: true }, q: { steps: [b] } "
      "}\n");
  CHECK(result.out.find("'p': a; not declared, because the file has no credentials for the broker\n") !=
        std::string::npos);
  CHECK(result.out.find("'q': b; not declared\n") != std::string::npos);
}

TEST_CASE("check prints every error and nothing else", "[cli]") {
  const Checked result =
      checked("broker: { url: \"amqpx://app:hunter2@x\" }\nlog: { level: loud }\nadnim: {}\n");
  CHECK(result.code == 2);
  CHECK(result.out == "");
  CHECK(result.err ==
        result.file +
            ":1:16: broker.url: is no broker's URL, allowed: amqp://[user:password@]host[:port][/vhost], "
            "amqps://... likewise, amqp+unix://[user:password@]/path[?vhost=vhost]\n" +
            result.file +
            ":2:15: log.level: 'loud' is not known, allowed: trace, debug, info, warn, error\n" +
            result.file +
            ":3:1: adnim: unknown key, allowed: service, listen, broker, stores, claim_check, stamp, "
            "pipelines, routes, "
            "slip, consume, limits, admin, log\n");
}

TEST_CASE("check of a file that is not there", "[cli]") {
  std::ostringstream out, err;
  CHECK(check("/nowhere/x.yaml", false, out, err) == 2);
  CHECK(err.str() ==
        "/nowhere/x.yaml: cannot be read: No such file or directory; create or mount it first\n");
}
