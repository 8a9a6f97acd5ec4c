// What a reload may change, and what of the stores it keeps.
#include "daemon/cli/make_snapshot.h"

#include "config/load.h"
#include "test/support/catch.h"
#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;

namespace {

config::Config configured(const std::string& yaml) {
  config::Loaded loaded = config::load_text("broker: { url: amqp://localhost }\n" + yaml, "f");
  REQUIRE(loaded.errors == std::vector<std::string>{});
  return loaded.config;
}

std::vector<std::string> refused(const std::string& before, const std::string& after) {
  return what_needs_restart(configured(before), configured(after), "f");
}

}  // namespace

TEST_CASE("what is bound at the start cannot change", "[reload]") {
  for (const auto& [before, after, key] : std::vector<std::array<std::string, 3>>{
           {"listen: [ { unix: /run/a } ]", "listen: [ { unix: /run/b } ]", "f: listen: "},
           {"listen: [ { unix: /run/a } ]", "listen: [ { unix: /run/a, mode: 0600 } ]", "f: listen: "},
           {"listen: [ { unix: /run/a } ]", "listen: [ { unix: /run/a }, { tcp: 127.0.0.1:1 } ]",
            "f: listen: "},
           {"", "admin: { tcp: 127.0.0.1:1 }", "f: admin.tcp: "},
           {"admin: { socket: /run/a }", "admin: { socket: /run/b }", "f: admin.socket: "},
           {"", "log: { format: json }", "f: log.format: "},
           {"stores: { s: { type: filesystem, path: /a } }", "stores: { s: { type: filesystem, path: /b } }",
            "f: stores.s: "},
           {"stores: { s: { type: filesystem, path: /a } }", "stores: { s: { type: memory } }",
            "f: stores.s: "},
           {"stores: { s: { type: memory } }", "stores: { s: { type: memory, keys: any } }",
            "f: stores.s: "}}) {
    INFO(before << " -> " << after);
    const std::vector<std::string> lines = refused(before, after);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with(key));
    CHECK(lines[0].ends_with(": restart bellhop for that"));
  }
}

TEST_CASE("what is looked at for each message or connection may change", "[reload]") {
  for (const auto& [before, after] : std::vector<std::array<std::string, 2>>{
           {"", "routes: [{ name: r, match: { exchange: e } }]"},
           {"", "pipelines: { p: { steps: [ a ] } }"},
           {"stores: { s: { type: filesystem, path: /a } }",
            "stores: { s: { type: filesystem, path: /a, retention: 1h, keys: any }, t: { type: filesystem, "
            "path: /b } }\nclaim_check: { store: s }"},
           {"stores: { s: { type: filesystem, path: /a } }", ""},
           {"listen: [ { unix: /run/a } ]", "listen: [ { unix: /run/a, allow_uids: [ 1 ] } ]"},
           {"", "limits: { message_bytes: 1MiB, inflight_bytes: 1MiB }"},
           {"", "admin: { watch: true }"},
           {"", "log: { level: debug }"},
           {"", "service: other"}}) {
    INFO(before << " -> " << after);
    CHECK(refused(before, after) == std::vector<std::string>{});
  }
}

TEST_CASE("a store whose settings are the same is the same store", "[reload]") {
  const TemporaryDirectory one, two;
  const std::string same = "same: { type: filesystem, path: " + std::string(one.path()) + ", fsync: false }";
  const auto make = [](const std::string& stores, Meter& meter, const Snapshot* before) {
    auto made = make_snapshot(std::make_shared<const config::Config>(
                                  configured("claim_check: { store: same }\nstores: { " + stores + " }\n")),
                              meter, before);
    REQUIRE(made);
    return made.value();
  };
  Meter meter(configured(""));
  const std::string other = "other: { type: filesystem, path: " + std::string(two.path()) + ", fsync: false";
  const auto before = make(same + ", " + other + " }", meter, nullptr);
  const std::string marker = two.file(marker_name);
  REQUIRE(std::filesystem::remove(marker));
  const auto after = make(other + ", keys: any }, " + same, meter, before.get());
  CHECK(after->generation == before->generation + 1);
  CHECK_FALSE(std::filesystem::exists(marker));  // its mount may be gone
  CHECK(after->stores->find("same") == before->stores->find("same"));
  CHECK(after->stores->find("other") != before->stores->find("other"));
  CHECK(after->stores->all().size() == 2);
  for (const auto& snapshot : {before, after})
    for (const auto& store : snapshot->stores->all()) store->close();
}
