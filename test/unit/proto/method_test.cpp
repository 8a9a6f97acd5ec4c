#include "proto/method.h"

#include "test/support/catch.h"
#include "test/support/hex.h"

using namespace bellhop;
using namespace bellhop::proto;
using test::from_hex;
using test::to_hex;

namespace {

// The payload of the one frame in `frame`.
Bytes payload_of(const Buffer& frame) {
  const auto result = split_frame(frame, 131072);
  REQUIRE(result.status == Split::frame);
  REQUIRE(result.frame.raw.size() == frame.size());
  REQUIRE(result.frame.type == frame_method);
  return result.frame.payload;
}

// A decoder takes exactly the payload: nothing shorter, nothing longer.
template <typename Decode>
void takes_only_the_whole(const Buffer& payload, Decode decode) {
  for (size_t size = 4; size < payload.size(); ++size) {
    INFO("cut to " << size << " of " << payload.size());
    const Buffer cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
    const auto result = decode(Bytes(cut));
    REQUIRE(!result.ok());
    CHECK(!result.error().empty());
  }
  Buffer longer = payload;
  longer.push_back(0);
  CHECK(!decode(Bytes(longer)).ok());
  REQUIRE(decode(Bytes(payload)).ok());
}

}  // namespace

TEST_CASE("a payload too short for a method number has none", "[method]") {
  CHECK(method_number(from_hex("003C0028")) == method::basic_publish);
  CHECK(method_number(from_hex("003C00")) == 0);
  CHECK(method_number({}) == 0);
}

TEST_CASE("basic.publish is read and written", "[method]") {
  const Buffer payload = from_hex("003C0028 0000 06 'orders' 09 'order.new' 03");
  takes_only_the_whole(payload, decode_publish);
  const auto publish = decode_publish(payload);
  REQUIRE(publish.ok());
  CHECK(publish.value().exchange == "orders");
  CHECK(publish.value().routing_key == "order.new");
  CHECK(publish.value().mandatory);
  CHECK(publish.value().immediate);

  Buffer out;
  put_publish(out, 1, {"orders", "order.new", true, true});
  CHECK(to_hex(payload_of(out)) == to_hex(payload));
  out.clear();
  put_publish(out, 1, {"", "", true, false});
  CHECK(to_hex(out) == "01 00 01 00 00 00 09 00 3C 00 28 00 00 00 00 01 CE");
}

TEST_CASE("basic.deliver is read", "[method]") {
  const Buffer payload = from_hex("003C003C 02 'ct' 0000000100000002 01 02 'ex' 01 'k'");
  takes_only_the_whole(payload, decode_deliver);
  const auto deliver = decode_deliver(payload);
  CHECK(deliver.value().consumer_tag == "ct");
  CHECK(deliver.value().delivery_tag == 0x100000002);
  CHECK(deliver.value().redelivered);
  CHECK(deliver.value().exchange == "ex");
  CHECK(deliver.value().routing_key == "k");
}

TEST_CASE("basic.get-ok is read", "[method]") {
  const Buffer payload = from_hex("003C0047 0000000000000007 00 00 05 'queue' 0000002A");
  takes_only_the_whole(payload, decode_get_ok);
  const auto get_ok = decode_get_ok(payload);
  CHECK(get_ok.value().delivery_tag == 7);
  CHECK(!get_ok.value().redelivered);
  CHECK(get_ok.value().exchange.empty());
  CHECK(get_ok.value().routing_key == "queue");
  CHECK(get_ok.value().message_count == 42);
}

TEST_CASE("basic.return is read and written", "[method]") {
  const Buffer payload = from_hex("003C0032 0138 08 'NO_ROUTE' 02 'ex' 01 'k'");
  takes_only_the_whole(payload, decode_return);
  const auto returned = decode_return(payload);
  CHECK(returned.value().reply_code == 312);
  CHECK(returned.value().reply_text == "NO_ROUTE");
  Buffer out;
  put_return(out, 9, returned.value());
  CHECK(to_hex(payload_of(out)) == to_hex(payload));
}

TEST_CASE("ack, nack and reject have their own bits", "[method]") {
  Buffer out;
  put_ack(out, 1, 5, true);
  CHECK(to_hex(out) == "01 00 01 00 00 00 0D 00 3C 00 50 00 00 00 00 00 00 00 05 01 CE");
  auto settle = decode_settle(payload_of(out));
  CHECK(settle.value().delivery_tag == 5);
  CHECK(settle.value().multiple);
  CHECK(!settle.value().requeue);
  takes_only_the_whole(Buffer(payload_of(out).begin(), payload_of(out).end()), decode_settle);

  // An ack has no requeue bit, whatever stands in its place.
  CHECK(!decode_settle(from_hex("003C0050 0000000000000005 03")).value().requeue);

  out.clear();
  put_nack(out, 1, 6, true, true);
  settle = decode_settle(payload_of(out));
  CHECK((settle.value().delivery_tag == 6 && settle.value().multiple && settle.value().requeue));
  out.clear();
  put_nack(out, 1, 6, false, true);
  settle = decode_settle(payload_of(out));
  CHECK((!settle.value().multiple && settle.value().requeue));

  out.clear();
  put_reject(out, 1, 7, true);
  settle = decode_settle(payload_of(out));
  CHECK((settle.value().delivery_tag == 7 && !settle.value().multiple && settle.value().requeue));
}

TEST_CASE("connection.close and channel.close are read and written", "[method]") {
  const Buffer payload = from_hex("000A0032 0140 06 'FORCED' 003C 0028");
  takes_only_the_whole(payload, decode_close);
  const auto close = decode_close(payload);
  CHECK(close.value().reply_code == 320);
  CHECK(close.value().reply_text == "FORCED");
  CHECK(close.value().class_id == 60);
  CHECK(close.value().method_id == 40);
  Buffer out;
  put_close(out, method::connection_close, 0, close.value());
  CHECK(to_hex(payload_of(out)) == to_hex(payload));
  out.clear();
  put_close(out, method::channel_close, 3, {541, std::string(300, 'x'), 0, 0});
  CHECK(decode_close(payload_of(out)).value().reply_text == std::string(255, 'x'));
}

TEST_CASE("connection.tune and tune-ok are read and written", "[method]") {
  const Buffer payload = from_hex("000A001E 07FF 00020000 003C");
  takes_only_the_whole(payload, decode_tune);
  const auto tune = decode_tune(payload);
  CHECK(tune.value().channel_max == 2047);
  CHECK(tune.value().frame_max_bytes == 131072);
  CHECK(tune.value().heartbeat_s == 60);
  Buffer out;
  put_tune(out, method::connection_tune_ok, tune.value());
  CHECK(to_hex(out) == "01 00 00 00 00 00 0C 00 0A 00 1F 07 FF 00 02 00 00 00 3C CE");
}

TEST_CASE("a method without arguments, or with zeros only", "[method]") {
  Buffer out = from_hex("FF");
  put_empty_method(out, method::tx_select_ok, 4);
  CHECK(to_hex(out) == "FF 01 00 04 00 00 00 04 00 5A 00 0B CE");
  out.clear();
  put_empty_method(out, method::channel_open, 4, 1);
  CHECK(to_hex(out) == "01 00 04 00 00 00 05 00 14 00 0A 00 CE");
}

TEST_CASE("connection.start-ok keeps the client's table byte for byte", "[method]") {
  // The table has a field that is there twice and one of a type that few libraries write.
  const Buffer payload = from_hex(
      "000A000B 00000013 01 'p' 'S' 00000001 'a' 01 'p' 'V' 01 'n' 's' FFFE 01 'm' 'V'"
      "05 'PLAIN' 00000004 00 'a' 00 'b' 05 'en_US'");
  takes_only_the_whole(payload, decode_start_ok);
  const auto start_ok = decode_start_ok(payload);
  CHECK(start_ok.value().mechanism == "PLAIN");
  CHECK(start_ok.value().response == std::string("\0a\0b", 4));
  CHECK(start_ok.value().locale == "en_US");
  Buffer out;
  put_start_ok(out, start_ok.value());
  CHECK(to_hex(payload_of(out)) == to_hex(payload));
}

TEST_CASE("connection.open names a virtual host", "[method]") {
  const Buffer payload = from_hex("000A0028 05 'vhost' 00 00");
  takes_only_the_whole(payload, decode_open);
  CHECK(decode_open(payload).value() == "vhost");
  Buffer out;
  put_open(out, "vhost");
  CHECK(to_hex(payload_of(out)) == to_hex(payload));
  out.clear();
  put_open(out, std::string(300, 'v'));
  CHECK(decode_open(payload_of(out)).value() == std::string(255, 'v'));
}

TEST_CASE("connection.start offers mechanisms", "[method]") {
  const Buffer payload =
      from_hex("000A000A 00 09 00000003 01 'a' 'V' 0000000E 'AMQPLAIN PLAIN' 00000005 'en_US'");
  takes_only_the_whole(payload, decode_start_mechanisms);
  CHECK(decode_start_mechanisms(payload).value() == "AMQPLAIN PLAIN");
}

TEST_CASE("basic.consume, with arguments", "[method]") {
  const Buffer payload = from_hex("003C0014 0000 01 'q' 02 'ct' 0A 00000007 01 'p' 'I' 00000005");
  takes_only_the_whole(payload, decode_consume);
  const auto consume = decode_consume(payload);
  CHECK(consume.value().queue == "q");
  CHECK(consume.value().consumer_tag == "ct");
  CHECK(!consume.value().no_local);
  CHECK(consume.value().no_ack);
  CHECK(!consume.value().exclusive);
  CHECK(consume.value().nowait);
}

TEST_CASE("the consumer tag of consume-ok, cancel and cancel-ok", "[method]") {
  for (const char* hex : {"003C0015 02 'ct'", "003C001E 02 'ct' 00", "003C001F 02 'ct'"}) {
    takes_only_the_whole(from_hex(hex), decode_consume_ok);
    CHECK(decode_consume_ok(from_hex(hex)).value() == "ct");
  }
}

TEST_CASE("the queue of queue.delete", "[method]") {
  const Buffer payload = from_hex("00320028 0000 01 'q' 07");
  takes_only_the_whole(payload, decode_queue_delete);
  CHECK(decode_queue_delete(payload).value() == "q");
}

TEST_CASE("basic.get is read and written", "[method]") {
  const Buffer payload = from_hex("003C0046 0000 01 'q' 01");
  takes_only_the_whole(payload, decode_get);
  CHECK(decode_get(payload).value().queue == "q");
  CHECK(decode_get(payload).value().no_ack);
  Buffer out;
  put_get(out, 3, {"q", true});
  CHECK(to_hex(payload_of(out)) == to_hex(payload));
}

TEST_CASE("queue.declare is read and written, declare-ok read", "[method]") {
  const Buffer payload = from_hex("0032000A 0000 01 'q' 15 00000000");
  takes_only_the_whole(payload, decode_queue_declare);
  const auto declare = decode_queue_declare(payload);
  CHECK(declare.value().queue == "q");
  CHECK(declare.value().passive);
  CHECK(declare.value().exclusive);
  CHECK(declare.value().nowait);
  Buffer out;
  put_queue_declare(out, 3, "q.parked", true);
  CHECK(to_hex(payload_of(out)) == to_hex(from_hex("0032000A 0000 08 'q.parked' 02 00000000")));

  const Buffer ok = from_hex("0032000B 07 'amq.gen' 00000001 00000002");
  takes_only_the_whole(ok, decode_queue_declare_ok);
  CHECK(decode_queue_declare_ok(ok).value() == "amq.gen");
}

TEST_CASE("the exchanges that a method names", "[method]") {
  struct Example {
    const char* hex;
    std::string first, second;
    bool passive, nowait;
  };
  const Example examples[] = {
      {"0028000A 0000 01 'e' 06 'direct' 11 00000000", "e", "", true, true},
      {"00280014 0000 01 'e' 02", "e", "", false, true},
      {"0028001E 0000 01 'd' 01 's' 01 'k' 01 00000000", "d", "s", false, true},
      {"00280028 0000 01 'd' 01 's' 01 'k' 00 00000000", "d", "s", false, false},
      {"00320014 0000 01 'q' 01 'e' 01 'k' 01 00000000", "e", "", false, true},
      {"00320032 0000 01 'q' 01 'e' 01 'k' 00000000", "e", "", false, false},
  };
  for (const Example& example : examples) {
    INFO(example.hex);
    takes_only_the_whole(from_hex(example.hex), decode_named_exchanges);
    const auto named = decode_named_exchanges(from_hex(example.hex));
    CHECK(named.value().first == example.first);
    CHECK(named.value().second == example.second);
    CHECK(named.value().passive == example.passive);
    CHECK(named.value().nowait == example.nowait);
  }
  CHECK(!decode_named_exchanges(from_hex("003C0028")).ok());
}

TEST_CASE("arguments that a hostile client nests without end are an error", "[method]") {
  // Arrays in arrays, as many as a frame holds: a decoder that recurses as it is told would leave its stack.
  Buffer nested;
  for (uint32_t level = 0; level < 20000; ++level) {
    Buffer outer = from_hex("'A'");
    put_u32(outer, (20000 - level - 1) * 5);
    put(nested, outer);
  }
  Buffer payload = from_hex("0032000A 0000 01 'q' 00");
  put_u32(payload, static_cast<uint32_t>(2 + nested.size()));
  put_shortstr(payload, "x");
  put(payload, nested);
  const auto declare = decode_queue_declare(payload);
  REQUIRE(!declare.ok());
  CHECK(declare.error().find("queue.declare") != std::string::npos);
  CHECK(declare.error().find("nested") != std::string::npos);
}
