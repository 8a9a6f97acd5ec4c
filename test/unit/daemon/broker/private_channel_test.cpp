#include "daemon/broker/private_channel.h"

#include "daemon/wire/outbox.h"
#include "proto/method.h"
#include "test/support/catch.h"
#include "test/support/hex.h"
#include "test/support/sockets.h"

using namespace bellhop;
using bellhop::test::to_hex;
namespace method = bellhop::proto::method;
using Kind = PrivateChannel::Outcome::Kind;

namespace {

constexpr uint16_t id = 9;

// A private channel over an outbox that a test empties, and what became of each item.
struct Rig {
  test::SocketPair pair;
  Outbox outbox;
  PrivateChannel channel{id, outbox};
  std::string outcomes;  // "a:acked b:returned312(NO_ROUTE) "

  void post(const std::string& name, const std::string& exchange = "e", const std::string& declare = "") {
    PrivateChannel::Item item;
    item.exchange = exchange;
    item.routing_key = "k";
    item.message_id = name;
    item.declare_queue = declare;
    item.frames = publish_of(name);
    item.done = [this, name](const PrivateChannel::Outcome& outcome) {
      constexpr const char* kinds[] = {"acked", "nacked", "returned", "refused"};
      outcomes += name + ":" + kinds[static_cast<int>(outcome.kind)];
      if (outcome.code != 0) outcomes += std::to_string(outcome.code) + "(" + outcome.text + ")";
      outcomes += " ";
    };
    channel.post(std::move(item));
  }

  void ask(const std::string& name) {
    PrivateChannel::Item question;
    question.asks = true;
    proto::put_exchange_declare_passive(question.frames, id, name);
    question.done = [this, name](const PrivateChannel::Outcome& outcome) {
      outcomes += name + (outcome.kind == Kind::acked ? "? yes " : "? " + std::to_string(outcome.code) + " ");
    };
    channel.post(std::move(question));
  }

  static Buffer publish_of(const std::string& name) {
    Buffer frames;
    proto::put_body_frames(frames, id, as_bytes("publish " + name), 4096);
    return frames;
  }

  // What went to the broker since the last call: methods by name, publishes as "<name>".
  std::string sent() {
    std::string out;
    if (outbox.empty()) return out;
    outbox.flush(pair.a);
    const Buffer bytes = test::read_some(pair.b, 1 << 20);
    for (Bytes rest = bytes; !rest.empty();) {
      const proto::Frame frame = proto::split_frame(rest, 1 << 20).frame;
      REQUIRE(frame.channel == id);
      rest = rest.subspan(frame.raw.size());
      if (!out.empty()) out += " ";
      if (frame.type == proto::frame_body) {
        out += "<" + std::string(as_text(frame.payload.subspan(8))) + ">";
        continue;
      }
      switch (proto::method_number(frame.payload)) {
        case method::channel_open:
          out += "open";
          break;
        case method::confirm_select:
          out += "select";
          break;
        case method::queue_declare:
          out += "declare";
          break;
        case method::exchange_declare:
          out += "question";
          break;
        case method::channel_close_ok:
          out += "close-ok";
          break;
        default:
          out += "?";
      }
    }
    return out;
  }

  bool hear(const Buffer& frames) {
    for (Bytes rest = frames; !rest.empty();) {
      const proto::Frame frame = proto::split_frame(rest, 1 << 20).frame;
      if (!channel.on_frame(frame)) return false;
      rest = rest.subspan(frame.raw.size());
    }
    return true;
  }
  bool hear_empty(uint32_t number, size_t arguments = 0) {
    Buffer out;
    proto::put_empty_method(out, number, id, arguments);
    return hear(out);
  }
  void ack(uint64_t tag, bool multiple = false) {
    Buffer out;
    proto::put_ack(out, id, tag, multiple);
    REQUIRE(hear(out));
  }
  void nack(uint64_t tag, bool multiple = false) {
    Buffer out;
    proto::put_nack(out, id, tag, multiple, false);
    REQUIRE(hear(out));
  }
  void close(uint16_t code, std::string_view text) {
    Buffer out;
    proto::put_close(out, method::channel_close, id, {code, text, 60, 40});
    REQUIRE(hear(out));
  }
  void give_back(const std::string& message_id, std::string_view body = {}, std::string_view exchange = "e") {
    Buffer out;
    proto::put_return(out, id, {312, "NO_ROUTE", exchange, "k"});
    Buffer header = test::from_hex("003C 0000");
    test::put_u64(header, body.size());
    test::put_u16(header, 0x0080);
    put_shortstr(header, message_id);
    proto::put_frame(out, proto::frame_header, id, header);
    proto::put_body_frames(out, id, as_bytes(body), 12);
    REQUIRE(hear(out));
  }
  void open() {
    REQUIRE(sent() == "open");
    REQUIRE(hear_empty(method::channel_open_ok, 4));
    REQUIRE(sent() == "select");
    REQUIRE(hear_empty(method::confirm_select_ok));
  }
};

}  // namespace

TEST_CASE("the private channel opens for its first item, in confirm mode", "[private_channel]") {
  Rig rig;
  REQUIRE(rig.sent().empty());
  rig.post("a");
  rig.post("b");
  REQUIRE_FALSE(rig.channel.is_idle());
  rig.open();
  REQUIRE(rig.sent() == "<a> <b>");
  rig.post("c");
  REQUIRE(rig.sent() == "<c>");
  rig.ack(1);
  rig.ack(3);
  rig.ack(2);
  REQUIRE(rig.outcomes == "a:acked c:acked b:acked ");
  REQUIRE(rig.channel.is_idle());
}

TEST_CASE("one confirm may settle several items, in their order", "[private_channel]") {
  Rig rig;
  for (const char* name : {"a", "b", "c", "d"}) rig.post(name);
  rig.open();
  rig.ack(2);
  rig.ack(3, true);
  rig.nack(0, true);
  REQUIRE(rig.outcomes == "b:acked a:acked c:acked d:nacked ");
  rig.ack(7);  // a tag that is not outstanding is nobody's
  REQUIRE(rig.channel.is_idle());
}

TEST_CASE("a return belongs to the earliest item that looks like it", "[private_channel]") {
  Rig rig;
  rig.post("a");
  rig.post("b", "other");
  rig.post("b");
  rig.post("b");
  rig.open();
  rig.give_back("b", "a body in more frames than one");
  rig.give_back("nobody");
  rig.ack(4, true);
  REQUIRE(rig.outcomes == "a:acked b:acked b:returned312(NO_ROUTE) b:acked ");
}

TEST_CASE("an item that was alone is the one that closed the channel", "[private_channel]") {
  Rig rig;
  rig.post("a");
  rig.open();
  REQUIRE(rig.sent() == "<a>");
  rig.close(404, "NOT_FOUND - no exchange 'e'");
  REQUIRE(rig.outcomes == "a:refused404(NOT_FOUND - no exchange 'e') ");
  REQUIRE(rig.sent() == "close-ok");
  REQUIRE(rig.channel.is_idle());
  rig.post("b");
  rig.open();
  rig.ack(1);
  REQUIRE(rig.outcomes.ends_with("b:acked "));
}

TEST_CASE("of several items each is tried alone on a fresh channel", "[private_channel]") {
  Rig rig;
  for (const char* name : {"a", "bad", "c"}) rig.post(name);
  rig.open();
  REQUIRE(rig.sent() == "<a> <bad> <c>");
  rig.close(404, "NOT_FOUND");
  REQUIRE(rig.outcomes.empty());
  REQUIRE(rig.sent() == "close-ok open");
  rig.post("late");
  REQUIRE(rig.hear_empty(method::channel_open_ok, 4));
  REQUIRE(rig.sent() == "select");
  REQUIRE(rig.hear_empty(method::confirm_select_ok));
  REQUIRE(rig.sent() == "<a>");
  rig.ack(1);
  REQUIRE(rig.sent() == "<bad>");
  rig.close(404, "NOT_FOUND");
  REQUIRE(rig.sent() == "close-ok open");
  REQUIRE(rig.outcomes == "a:acked bad:refused404(NOT_FOUND) ");
  REQUIRE(rig.hear_empty(method::channel_open_ok, 4));
  REQUIRE(rig.hear_empty(method::confirm_select_ok));
  REQUIRE(rig.sent() == "select <c>");
  rig.ack(1);
  REQUIRE(rig.sent() == "<late>");
  rig.post("later");
  REQUIRE(rig.sent() == "<later>");  // no longer one by one
  rig.ack(3, true);
  REQUIRE(rig.outcomes == "a:acked bad:refused404(NOT_FOUND) c:acked late:acked later:acked ");
}

TEST_CASE("what waits for the channel is bounded to 256 on their way", "[private_channel]") {
  Rig rig;
  for (int n = 0; n < 300; ++n) rig.post("x");
  rig.open();
  const std::string first = rig.sent();
  CHECK(std::count(first.begin(), first.end(), '<') == 256);
  rig.ack(256, true);
  const std::string second = rig.sent();
  CHECK(std::count(second.begin(), second.end(), '<') == 44);
  rig.ack(300, true);
  CHECK(rig.channel.is_idle());
}

TEST_CASE("the queue of an item that came back is declared, the item sent again, and those behind it wait",
          "[private_channel]") {
  Rig rig;
  rig.post("a", "e", "q.parked");
  rig.open();
  REQUIRE(rig.sent() == "<a>");
  rig.give_back("a");
  rig.ack(1);
  REQUIRE(rig.outcomes.empty());
  REQUIRE(rig.sent() == "declare <a>");
  rig.post("b");
  REQUIRE(rig.sent().empty());
  Buffer ok;
  proto::put_frame(ok, proto::frame_method, id, test::from_hex("0032 000B 08'q.parked' 00000000 00000000"));
  REQUIRE(rig.hear(ok));
  REQUIRE(rig.sent() == "<b>");
  rig.ack(3, true);
  REQUIRE(rig.outcomes == "a:acked b:acked ");
}

TEST_CASE("an item that comes back although its queue was declared is returned", "[private_channel]") {
  Rig rig;
  rig.post("a", "e", "q.parked");
  rig.open();
  rig.give_back("a");
  rig.ack(1);
  rig.give_back("a");
  rig.ack(2);
  REQUIRE(rig.outcomes == "a:returned312(NO_ROUTE) ");
}

TEST_CASE("an item may be posted by the end of another", "[private_channel]") {
  Rig rig;
  PrivateChannel::Item item;
  item.frames = Rig::publish_of("first");
  item.done = [&rig](const PrivateChannel::Outcome&) { rig.post("second"); };
  rig.channel.post(std::move(item));
  rig.open();
  REQUIRE(rig.sent() == "<first>");
  rig.close(403, "ACCESS_REFUSED");
  REQUIRE(rig.sent() == "close-ok open");
  REQUIRE(rig.hear_empty(method::channel_open_ok, 4));
  REQUIRE(rig.hear_empty(method::confirm_select_ok));
  rig.ack(1);
  REQUIRE(rig.outcomes == "second:acked ");
}

TEST_CASE("frames that do not belong here break the protocol", "[private_channel]") {
  Rig rig;
  rig.post("a");
  rig.open();
  Buffer body, deliver, header;
  proto::put_frame(body, proto::frame_body, id, as_bytes("x"));
  CHECK_FALSE(rig.hear(body));
  proto::put_frame(deliver, proto::frame_method, id,
                   test::from_hex("003C 003C 01 'c' 0000000000000001 00 01 'e' 01 'k'"));
  CHECK_FALSE(rig.hear(deliver));
  proto::put_frame(header, proto::frame_header, id, test::from_hex("003C 0000 0000000000000000 0000"));
  CHECK_FALSE(rig.hear(header));
  Buffer returned;
  proto::put_return(returned, id, {312, "NO_ROUTE", "e", "k"});
  REQUIRE(rig.hear(returned));
  CHECK_FALSE(rig.hear(body));  // a header is due
}

TEST_CASE("a question is asked when nothing else is under way, and nothing is sent before its answer",
          "[private_channel]") {
  Rig rig;
  rig.post("a");
  rig.open();
  CHECK(rig.sent() == "<a>");
  rig.ask("p");
  rig.post("b");
  CHECK(rig.sent().empty());
  rig.ack(1);
  CHECK(rig.sent() == "question");
  REQUIRE(rig.hear_empty(method::exchange_declare_ok));
  CHECK(rig.sent() == "<b>");
  rig.ack(2);
  CHECK(rig.outcomes == "a:acked p? yes b:acked ");
  CHECK(rig.channel.is_idle());
}

TEST_CASE("an answer that closes the channel is the question's alone, and what was posted behind it goes on",
          "[private_channel]") {
  Rig rig;
  rig.ask("p");
  rig.open();
  CHECK(rig.sent() == "question");
  rig.ask("q");
  rig.post("a");
  rig.post("b");
  rig.close(404, "NOT_FOUND");
  CHECK(rig.outcomes == "p? 404 ");
  CHECK(rig.sent() == "close-ok open");
  REQUIRE(rig.hear_empty(method::channel_open_ok, 4));
  CHECK(rig.sent() == "select");
  REQUIRE(rig.hear_empty(method::confirm_select_ok));
  CHECK(rig.sent() == "question");
  REQUIRE(rig.hear_empty(method::exchange_declare_ok));
  CHECK(rig.sent() == "<a> <b>");
  rig.ack(2, true);
  CHECK(rig.outcomes == "p? 404 q? yes a:acked b:acked ");
}

TEST_CASE("where an item goes may be decided by the answer before it", "[private_channel]") {
  Rig rig;
  rig.ask("p");
  PrivateChannel::Item item;
  item.frames = Rig::publish_of("there");
  item.prepare = [&rig](PrivateChannel::Item& sent) {
    sent.frames = Rig::publish_of(rig.outcomes == "p? 404 " ? "elsewhere" : "there");
  };
  item.done = [&rig](const PrivateChannel::Outcome&) { rig.outcomes += "done "; };
  rig.channel.post(std::move(item));
  rig.open();
  CHECK(rig.sent() == "question");
  rig.close(404, "NOT_FOUND");
  CHECK(rig.sent() == "close-ok open");
  REQUIRE(rig.hear_empty(method::channel_open_ok, 4));
  CHECK(rig.sent() == "select");
  REQUIRE(rig.hear_empty(method::confirm_select_ok));
  CHECK(rig.sent() == "<elsewhere>");
  rig.ack(1);
  CHECK(rig.outcomes == "p? 404 done ");
}
