#include "daemon/pipeline/stamp.h"

#include "config/load.h"
#include "proto/frame.h"
#include "proto/table.h"
#include "test/support/catch.h"
#include "test/support/hex.h"
#include "test/support/random_words.h"

using namespace bellhop;
using bellhop::test::from_hex;
using bellhop::test::to_hex;

namespace {

// One publish through a Stamper of its own.
struct Rig {
  std::shared_ptr<const config::Config> config;
  std::unique_ptr<config::RoutingTable> routing;
  proto::UuidGenerator uuids{test::random_words(1)}, same_uuids{test::random_words(1)};
  const std::string origin = "shop@host";
  std::unique_ptr<Stamper> stamper;
  Buffer header, out;
  Stamped stamped;
  std::string refused;

  explicit Rig(const std::string& yaml) {
    config::Loaded loaded = config::load_text("broker: { url: amqp://localhost }\n" + yaml, "test");
    REQUIRE(loaded.errors == std::vector<std::string>{});
    config = std::make_shared<const config::Config>(std::move(loaded.config));
    routing = std::make_unique<config::RoutingTable>(config);
    stamper = std::make_unique<Stamper>(uuids);
  }

  // The next id that the stamper makes.
  std::string next_id() { return std::string(proto::view(same_uuids.next())); }

  std::string write(std::string_view header_hex, const Claim* claim = nullptr, size_t framing_bytes = 0,
                    size_t frame_bytes_max = 4096) {
    header = from_hex(header_hex);
    out.clear();
    const proto::ContentHeader decoded = proto::decode_content_header(header).value();
    const proto::Publish publish{"orders", "order.new", true, false};
    const config::Plan& plan = routing->find("orders", "order.new", decoded.header_fields());
    stamped = stamper->write(out, 3, {publish, decoded, *routing, plan, origin, claim, framing_bytes, false},
                             frame_bytes_max);
    return to_hex(out);
  }
};

// The frames of a publish to that exchange and key, with this content header.
std::string frames(std::string_view exchange, std::string_view key, const Buffer& header) {
  Buffer out;
  proto::put_publish(out, 3, {exchange, key, true, false});
  proto::put_frame(out, proto::frame_header, 3, header);
  return to_hex(out);
}

// A content header with a headers table, delivery mode and message id.
Buffer header_of(uint64_t body_bytes, const Buffer& fields, uint8_t delivery_mode,
                 std::string_view message_id) {
  Buffer out = from_hex("003C 0000");
  test::put_u64(out, body_bytes);
  test::put_u16(out, 0x3080);
  put_u32(out, static_cast<uint32_t>(fields.size()));
  put(out, fields);
  put_u8(out, delivery_mode);
  put_shortstr(out, message_id);
  return out;
}

constexpr std::string_view bare = "003C 0000 0000000000000005 0000";
constexpr std::string_view complete = "003C 0000 0000000000000005 1080 01 01'm'";

}  // namespace

TEST_CASE("delivery mode and message id are filled in when they are missing", "[stamp]") {
  Rig rig("");
  const std::string written = rig.write(bare);
  Buffer header = from_hex("003C 0000 0000000000000005 1080 02");
  const std::string made = rig.next_id();
  put_shortstr(header, made);
  REQUIRE(written == frames("orders", "order.new", header));
  REQUIRE(rig.stamped.message_id == made);
}

TEST_CASE("a publish that lacks nothing is the client's own frames", "[stamp]") {
  Rig filled("");
  CHECK(filled.write(complete).empty());
  CHECK(filled.stamped.as_it_is);
  CHECK(filled.stamped.message_id == "m");
  Rig keep("stamp: { delivery_mode: keep, message_id: keep }");
  CHECK(keep.write(bare).empty());
  CHECK(keep.stamped.as_it_is);
}

TEST_CASE("an inline frame and a claim change the size, and a claim says what it is", "[stamp]") {
  Rig rig("");
  CHECK(rig.write(complete, nullptr, 3) ==
        frames("orders", "order.new", from_hex("003C 0000 0000000000000008 1080 01 01'm'")));

  Claim claim;
  claim.store = "claims";
  claim.key = "00000000-0000-4000-8000-000000000001";
  claim.size_bytes = 5;
  claim.xxh128 = std::string(32, 'a');
  Buffer fields;
  proto::put_field(fields, "bellhop-claim-key", claim.key);
  proto::put_field(fields, "bellhop-claim-store", claim.store);
  proto::put_field(fields, "bellhop-claim-size", int64_t{5});
  proto::put_field(fields, "bellhop-claim-xxh128", claim.xxh128);
  CHECK(rig.write(complete, &claim) == frames("orders", "order.new", header_of(39, fields, 1, "m")));
}

TEST_CASE("another message's claim headers are removed", "[stamp]") {
  Rig rig("");
  Buffer theirs;
  proto::put_field(theirs, "bellhop-claim-key", "k");
  proto::put_field(theirs, "a", int64_t{1});
  proto::put_field(theirs, "bellhop-claim-other", "mine");
  Buffer ours;
  proto::put_field(ours, "a", int64_t{1});
  proto::put_field(ours, "bellhop-claim-other", "mine");
  const std::string written = rig.write(to_hex(header_of(5, theirs, 1, "m")));
  CHECK(written == frames("orders", "order.new", header_of(5, ours, 1, "m")));
}

TEST_CASE("a route rewrites, adds headers that are absent, and leaves those that are there", "[stamp]") {
  Rig rig(
      R"(routes: [{ name: r, match: { exchange: orders }, to: { exchange: v2, routing_key: all }, headers: { x-a: "1", x-b: "2" } }])");
  Buffer before, after;
  proto::put_field(before, "x-a", "mine");
  after = before;
  proto::put_field(after, "x-b", "2");
  CHECK(rig.write(to_hex(header_of(5, before, 2, "m"))) == frames("v2", "all", header_of(5, after, 2, "m")));
  CHECK(rig.stamped.exchange == "v2");
}

TEST_CASE("a route with a pipeline starts a slip, each with a run id of its own", "[stamp]") {
  Rig rig(R"(
pipelines: { line: { steps: [one, two] } }
routes: [{ name: r, match: { exchange: orders }, slip: { pipeline: line } }]
)");
  for (int run = 0; run < 2; ++run) {
    const std::string written = rig.write(complete);
    Buffer fields;
    proto::put_field(fields, "x-acemq-route", "one,two");
    proto::put_field(fields, "x-acemq-route-position", int64_t{0});
    proto::put_field(fields, "x-acemq-route-id", rig.next_id());
    CHECK(written == frames("line", "one", header_of(5, fields, 1, "m")));
  }
}

TEST_CASE("a route with an itinerary starts it", "[stamp]") {
  Rig rig(
      R"(routes: [{ name: r, match: { exchange: orders }, slip: { itinerary: [{ exchange: "", routing_key: orders.new }] } }])");
  Buffer fields;
  proto::put_field(fields, "acemq-routing-slip", R"({"steps":[{"exchange":"","routingKey":"orders.new"}]})");
  CHECK(rig.write(complete) == frames("", "orders.new", header_of(5, fields, 1, "m")));
}

TEST_CASE("a slip that is there stays, and says where the message goes", "[stamp]") {
  Rig rig(R"(
pipelines: { line: { steps: [one, two] } }
routes: [{ name: r, match: { exchange: orders }, slip: { pipeline: line } }]
)");
  Buffer fields;
  proto::put_field(fields, "x-acemq-route-position", "1");
  proto::put_field(fields, "x-acemq-route", " one,two");
  CHECK(rig.write(to_hex(header_of(5, fields, 1, "m"))) ==
        frames("line", "two", header_of(5, fields, 1, "m")));

  Buffer finished;
  proto::put_field(finished, "acemq-routing-slip", R"({"steps":[]})");
  CHECK(rig.write(to_hex(header_of(5, finished, 1, "m"))).empty());
  CHECK(rig.stamped.as_it_is);

  Buffer broken;
  proto::put_field(broken, "acemq-routing-slip", "{");
  CHECK(rig.write(to_hex(header_of(5, broken, 1, "m"))).empty());
  CHECK(rig.stamped.refused_code == 406);
}

TEST_CASE("an envelope is added where the client has none", "[stamp]") {
  Rig rig("stamp: { envelope: acemq }");
  rig.write(complete);
  const proto::Frame header = [&] {
    const Bytes all(rig.out);
    const proto::Frame method = proto::split_frame(all, 4096).frame;
    return proto::split_frame(all.subspan(method.raw.size()), 4096).frame;
  }();
  const proto::ContentHeader decoded = proto::decode_content_header(header.payload).value();
  std::string text;
  proto::TableCursor cursor(decoded.header_fields());
  while (const auto field = cursor.next()) {
    const auto value = proto::field_text(*field);
    text += std::string(field->name) + "=" +
            (field->name == "x-acemq-first-seen" ? "now" : value.value_or("?")) + " ";
  }
  CHECK(text ==
        "x-acemq-id=m x-acemq-type=order.new x-acemq-version=1 x-acemq-correlation=m x-acemq-attempt=1 "
        "x-acemq-first-seen=now "
        "x-acemq-origin=shop@host ");
}

TEST_CASE("what a route adds is refused when it does not fit, and nothing is written", "[stamp]") {
  const size_t bare_bytes = 8 + from_hex(bare).size();
  for (const char* yaml :
       {"routes: [{ name: r, headers: { x-tenant: acme } }]", "stamp: { envelope: acemq }",
        "pipelines: { p: { steps: [s] } }\nroutes: [{ name: r, slip: { pipeline: p } }]"}) {
    Rig rig(yaml);
    CHECK(rig.write(bare, nullptr, 0, bare_bytes).empty());
    CHECK(rig.stamped.refused_code == 311);
  }
}

TEST_CASE("what is filled in is left out when it does not fit: first the id, then the delivery mode",
          "[stamp]") {
  const size_t bare_bytes = 8 + from_hex(bare).size();
  const std::string only_mode = frames("orders", "order.new", from_hex("003C 0000 0000000000000005 1000 02"));
  for (size_t room = 0; room < 38; ++room) {
    Rig rig("");
    CHECK(rig.write(bare, nullptr, 0, bare_bytes + room) ==
          (room == 0 ? frames("orders", "order.new", from_hex(bare)) : only_mode));
    CHECK(rig.stamped.refused_code == 0);
    CHECK(rig.stamped.message_id.empty());
  }
  Rig rig("");
  CHECK(rig.write(bare, nullptr, 0, bare_bytes + 38).find(to_hex(from_hex("1080 02 24"))) !=
        std::string::npos);
  CHECK(rig.stamped.message_id.size() == 36);
}

TEST_CASE("a claim goes without its headers when these do not fit", "[stamp]") {
  Claim claim;
  claim.store = "claims";
  claim.key = "00000000-0000-4000-8000-000000000001";
  claim.size_bytes = 5;
  claim.xxh128 = std::string(32, 'a');
  Rig rig("");
  CHECK(rig.write(complete, &claim, 0, 8 + from_hex(complete).size()) ==
        frames("orders", "order.new", from_hex("003C 0000 0000000000000027 1080 01 01'm'")));
  CHECK(rig.stamped.message_id == "m");
  // Old ones go all the same.
  Buffer old;
  proto::put_field(old, "bellhop-claim-key", "old");
  const Buffer with_old = header_of(5, old, 1, "m");
  rig.write(to_hex(with_old), &claim, 0, 8 + with_old.size());
  CHECK(rig.stamped.refused_code == 0);
  CHECK(to_hex(rig.out).find(to_hex(Bytes(reinterpret_cast<const uint8_t*>("bellhop-claim"), 13))) ==
        std::string::npos);
}
