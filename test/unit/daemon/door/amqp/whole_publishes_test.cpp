// Publishes that are whole when they are looked at: they go a shorter way, and everything is as on the
// longer.
#include <random>

#include "test/unit/daemon/door/amqp/rig.h"

using namespace bellhop;
using namespace bellhop::test;
namespace method = bellhop::proto::method;

namespace {

const char* const rules = R"(
limits: { message_bytes: 1KiB }
stamp: { message_id: keep, delivery_mode: keep }
claim_check: { store: first, threshold: 200B }
pipelines: { p: { steps: [ a, b ] } }
slip: { allowed_exchanges: [ x ] }
routes:
  - { name: plain, match: { exchange: e, routing_key: k } }
  - { name: moved, match: { exchange: moved }, to: { exchange: other } }
  - { name: filled, match: { exchange: filled, routing_key: k }, stamp: { delivery_mode: persistent } }
  - { name: fixed, match: { exchange: fixed }, headers: { tenant: acme } }
  - { name: itinerary, match: { exchange: start }, slip: { itinerary: [ { exchange: x, routing_key: k } ] } }
  - { name: inline, match: { exchange: inline }, claim_check: { inline_framing: always } }
)";

Buffer field(std::string_view name, std::string_view text) {
  Buffer out;
  proto::put_field(out, name, text);
  return out;
}

// Publishes as clients make them, and as they should not. Many repeat what the one before said.
class Publishes {
 public:
  explicit Publishes(unsigned seed) : random_(seed) {}
  Buffer next() {
    if (one_of(3) == 0) {
      exchange_ = pick({"", "e", "moved", "filled", "fixed", "start", "inline", "bellhop.route"});
      key_ = pick({"k", "q", "moved", "plain", "itinerary", "amq.rabbitmq.reply-to.x"});
      mandatory_ = one_of(8) == 0;
    }
    static const std::vector<Buffer> tables = {
        {}, {}, field("tenant", "own"), field("bellhop-claim-key", "x")};
    std::string body(pick_size(), 'b');
    if (one_of(6) == 0) body = std::string("\xAC\x01", 2) + static_cast<char>(one_of(3)) + body;
    Buffer out = publish(1, exchange_, key_, body, mandatory_, one_of(2) == 0 ? "id" : "",
                         tables[one_of(tables.size())]);
    // Of the content header: a size, a flag, a property that is cut off.
    if (one_of(20) == 0 && !body.empty()) out[out.size() - body.size() - 10 - one_of(14)] ^= 1;
    if (one_of(40) == 0) {  // the one before was only begun
      Buffer begun;
      proto::put_publish(begun, 1, {exchange_, key_, false, false});
      out = joined({begun, out});
    }
    return out;
  }

 private:
  size_t one_of(size_t count) { return random_() % count; }
  std::string pick(const std::vector<std::string>& from) { return from[one_of(from.size())]; }
  size_t pick_size() {
    const std::vector<size_t> sizes = {0, 1, 2, 3, 4, 50, 199, 200, 1024, 1025};
    return sizes[one_of(sizes.size())];
  }

  std::mt19937 random_;
  std::string exchange_ = "e", key_ = "k";
  bool mandatory_ = false;
};

std::string bytes_of(Outbox& outbox) {
  std::string out;
  while (!outbox.empty()) {
    out += as_text(outbox.front());
    outbox.drop_front(outbox.front().size());
  }
  return out;
}

// What the broker's leg and the client's have of it, byte for byte, and how the connection stands.
std::string outcome(Rig& rig) {
  std::string out =
      bytes_of(rig.broker_outbox) + " | " + bytes_of(rig.client_outbox) + " | " + rig.connection_closed;
  out += " | " + std::to_string(rig.first->puts.size()) + " " + std::to_string(rig.relay->unconfirmed());
  return out;
}

bool is_whole_frames(const Buffer& bytes) {
  for (Bytes rest = bytes; !rest.empty();) {
    const auto split = proto::split_frame(rest, 1 << 20);
    if (split.status != proto::Split::frame) return false;
    rest = rest.subspan(split.frame.raw.size());
  }
  return true;
}

}  // namespace

TEST_CASE("publishes are the same taken whole and frame by frame", "[session]") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Rig whole(rules), by_frames(rules);
    whole.open_with_confirms();
    by_frames.open_with_confirms();
    Publishes publishes(seed);
    for (int i = 0; i < 40; ++i) {
      const Buffer bytes = publishes.next();
      if (!is_whole_frames(bytes)) continue;
      whole.client(bytes);
      by_frames.client_by_frames(bytes);
      const std::string expected = outcome(by_frames);
      INFO("seed " << seed << ", publish " << i);
      REQUIRE(outcome(whole) == expected);
      if (!whole.connection_closed.empty() || !whole.channel().end.is_open()) break;
    }
  }
}

TEST_CASE("a repeated publish follows the configuration that is in use", "[session]") {
  Rig rig("routes: [ { name: r, match: { exchange: e }, to: { exchange: first } } ]\n");
  rig.open();
  rig.client(joined({publish(1, "e", "k", "one"), publish(1, "e", "k", "two")}));
  CHECK(rig.to_broker() ==
        "1 publish first/k, 1 header 3, 1 body one, 1 publish first/k, 1 header 3, 1 body two");
  Rig next("routes: [ { name: r, match: { exchange: e }, to: { exchange: second } } ]\n");
  rig.use(rig.snapshot_of(next.config, {rig.first, rig.second}));
  rig.client(publish(1, "e", "k", "three"));
  CHECK(rig.to_broker() == "1 publish second/k, 1 header 5, 1 body three");
}

TEST_CASE("a publish with another user's name is refused, also when the one before was taken", "[session]") {
  Rig rig;
  rig.state->has_own_login = true;
  rig.state->broker_user = "bellhop";
  rig.open();
  rig.client(publish(1, "e", "k", "one"));
  rig.to_broker();
  Buffer method, header = {0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0x10, 3, 'e', 'v', 'e'};
  proto::put_publish(method, 1, {"e", "k", false, false});
  Buffer frame;
  proto::put_frame(frame, proto::frame_header, 1, header);
  rig.client(joined({method, frame, body_frame(1, "two")}));
  CHECK(rig.to_broker() == "1 close 200");
}
TEST_CASE("a route by its name is no exchange of the broker's", "[session]") {
  Rig rig(
      "routes: [ { name: plain, match: { exchange: e, routing_key: k } } ]\nstamp: { message_id: keep, "
      "delivery_mode: keep }\n");
  rig.open();
  rig.client(
      joined({publish(1, "bellhop.route", "plain", "one"), publish(1, "bellhop.route", "plain", "two")}));
  CHECK(rig.to_broker() == "1 publish e/k, 1 header 3, 1 body one, 1 publish e/k, 1 header 3, 1 body two");
}
