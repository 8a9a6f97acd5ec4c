// TLS over a pair of sockets: bytes in any pieces, ends, full sockets, damage.
#include "daemon/wire/tls_stream.h"

#include <cerrno>

#include "test/support/catch.h"
#include "test/support/tls_peer.h"

using namespace bellhop;
using bellhop::test::TlsRig;
using Step = bellhop::TlsStream::Step;

namespace {

std::string text_of(size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + (i * 7) % 26);
  return text;
}

std::string flushed(TlsRig& rig, const std::string& text) {
  Outbox outbox;
  outbox.borrow(as_bytes(text));
  REQUIRE(rig.stream->flush(rig.pair.a, outbox) > 0);
  rig.carry_up();
  return std::exchange(rig.peer->heard, "");
}

}  // namespace

TEST_CASE("after the handshake bytes go both ways, in TLS 1.2 and 1.3", "[tls]") {
  TlsRig rig({}, "localhost", GENERATE(TLS1_2_VERSION, TLS1_3_VERSION));
  REQUIRE(rig.shake_hands() == Step::done);
  REQUIRE(rig.peer->asked_name() == "localhost");
  REQUIRE(flushed(rig, "good day") == "good day");
  rig.peer->says("and to you");
  rig.give(rig.peer->output());
  ssize_t last = 0;
  REQUIRE(rig.receive_all(4096, &last) == "and to you");
  REQUIRE((last == -1 && errno == EAGAIN));
  REQUIRE_FALSE(rig.stream->has_unread());
}

TEST_CASE("TLS 1.1 is not spoken", "[tls]") {
  TlsRig rig({}, "localhost", TLS1_1_VERSION);
  REQUIRE(rig.shake_hands() == Step::failed);
}

TEST_CASE("a handshake and what follows it may come byte by byte", "[tls]") {
  TlsRig rig({}, "localhost", GENERATE(TLS1_2_VERSION, TLS1_3_VERSION));
  rig.open();
  Step step = rig.step();
  for (int flight = 0; flight < 4 && step == Step::waiting; ++flight) {
    rig.carry_up();
    for (const uint8_t byte : rig.peer->output()) {
      REQUIRE(step == Step::waiting);
      rig.give({&byte, 1});
      step = rig.step();
    }
  }
  REQUIRE(step == Step::done);
  rig.carry_up();
  rig.peer->says("one");
  rig.peer->says("two");
  std::string got;
  for (const uint8_t byte : rig.peer->output()) {
    rig.give({&byte, 1});
    got += rig.receive_all();
  }
  REQUIRE(got == "onetwo");
}

TEST_CASE("records may be cut anywhere between two reads", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  rig.receive_all();
  size_t wire_bytes = 1;
  for (size_t cut = 0; cut <= wire_bytes; ++cut) {
    rig.peer->says("first");
    rig.peer->says("second");
    const Buffer wire = rig.peer->output();
    wire_bytes = wire.size();
    rig.give(Bytes(wire).first(cut));
    std::string got = rig.receive_all();
    REQUIRE(got.size() <= 11);
    rig.give(Bytes(wire).subspan(cut));
    REQUIRE(got + rig.receive_all() == "firstsecond");
  }
}

TEST_CASE("what a small buffer leaves behind is announced and comes later", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  const std::string text = text_of(50'000);
  rig.peer->says(text);
  rig.give(rig.peer->output());
  const size_t piece = GENERATE(1, 100, 16'384, 20'000);
  Buffer buffer(piece);
  std::string got;
  do {
    const ssize_t received = rig.stream->receive(rig.pair.a, buffer.data(), piece);
    REQUIRE(received > 0);
    got.append(reinterpret_cast<const char*>(buffer.data()), static_cast<size_t>(received));
  } while (rig.stream->has_unread());
  got += rig.receive_all();
  REQUIRE((got == text));
}

TEST_CASE("a full socket leaves the rest in the outbox, and nothing is lost", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  test::set_send_buffer(rig.pair.a, 1);
  const std::string text = text_of(700'000);
  Outbox outbox;
  {
    const std::string lent = text;
    outbox.append(as_bytes(lent).first(10));
    outbox.borrow(as_bytes(lent).subspan(10));
    REQUIRE(rig.stream->flush(rig.pair.a, outbox) >= 0);
  }
  REQUIRE(rig.stream->has_unsent());
  REQUIRE(outbox.pending() > text.size() / 2);  // not all of it is encrypted into memory
  for (int round = 0; round < 10'000 && (rig.stream->has_unsent() || !outbox.empty()); ++round) {
    rig.carry_up();
    REQUIRE(rig.stream->flush(rig.pair.a, outbox) >= 0);
  }
  rig.carry_up();
  REQUIRE((rig.peer->heard == text));
}

TEST_CASE("small pieces share a record", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  rig.receive_all();
  Outbox outbox;
  const std::string piece = text_of(3000);
  std::string all;
  for (int i = 0; i < 50; ++i) {
    outbox.append(as_bytes(piece).first(20));
    outbox.borrow(as_bytes(piece));
    all += piece.substr(0, 20) + piece;
  }
  const ssize_t sent = rig.stream->flush(rig.pair.a, outbox);
  REQUIRE(outbox.empty());
  constexpr size_t record_overhead_max = 40;
  REQUIRE(static_cast<size_t>(sent) <= all.size() + (all.size() / 16'384 + 5) * record_overhead_max);
  rig.carry_up();
  REQUIRE((rig.peer->heard == all));
}

TEST_CASE("close_notify is an end, told after what stood before it", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  rig.peer->says("bye");
  rig.peer->says_end();
  rig.give(rig.peer->output());
  uint8_t buffer[100];
  REQUIRE(rig.stream->receive(rig.pair.a, buffer, sizeof buffer) == 3);
  REQUIRE(rig.stream->has_unread());  // no event of the socket would tell it
  REQUIRE(rig.stream->receive(rig.pair.a, buffer, sizeof buffer) == 0);
  REQUIRE(rig.stream->receive(rig.pair.a, buffer, sizeof buffer) == 0);
  REQUIRE(flushed(rig, "I may still speak") == "I may still speak");
}

TEST_CASE("a socket that ends without close_notify is an end too, wherever it cuts a record", "[tls]") {
  const size_t cut = GENERATE(0, 1, 4, 5, 6, 20);
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  rig.peer->says("whole");
  rig.give(rig.peer->output());
  rig.peer->says("not whole");
  rig.give(Bytes(rig.peer->output()).first(cut));
  rig.pair.close_b();
  ssize_t last = -1;
  REQUIRE(rig.receive_all(4096, &last) == "whole");
  REQUIRE(last == 0);
}

TEST_CASE("a handshake that is cut at any length fails, and says so", "[tls]") {
  size_t flight_bytes = 1;
  for (size_t cut = 0; cut < flight_bytes; cut += 13) {
    TlsRig rig;
    rig.open();
    REQUIRE(rig.step() == Step::waiting);
    rig.carry_up();
    const Buffer flight = rig.peer->output();
    flight_bytes = flight.size();
    rig.give(Bytes(flight).first(cut));
    rig.pair.close_b();
    REQUIRE(rig.step() == Step::failed);
    REQUIRE(rig.stream->error() == "the peer closed the connection in the TLS handshake");
  }
}

TEST_CASE("a damaged record breaks the stream, after what came before it", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  rig.peer->says("good");
  Buffer wire = rig.peer->output();
  rig.peer->says("bad");
  Buffer damaged = rig.peer->output();
  damaged.back() ^= 1;
  put(wire, damaged);
  rig.give(wire);
  ssize_t last = 0;
  REQUIRE(rig.receive_all(4096, &last) == "good");
  REQUIRE((last == -1 && errno == EPROTO));
  REQUIRE(rig.stream->error().starts_with("TLS failed: "));
  Outbox outbox;
  outbox.append(as_bytes("no more"));
  REQUIRE(rig.stream->flush(rig.pair.a, outbox) == -1);
}

TEST_CASE("new keys in the middle change nothing", "[tls]") {
  TlsRig rig({}, "localhost", TLS1_3_VERSION);
  REQUIRE(rig.shake_hands() == Step::done);
  rig.carry_up();
  for (int round = 0; round < 3; ++round) {
    rig.peer->says_new_keys();
    rig.peer->says("still here");
    rig.give(rig.peer->output());
    REQUIRE(rig.receive_all() == "still here");
    REQUIRE(flushed(rig, "I too") == "I too");
  }
}

TEST_CASE("the end is said with close_notify", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  REQUIRE(flushed(rig, "last words") == "last words");
  rig.stream->end(rig.pair.a);
  rig.carry_up();
  REQUIRE(rig.peer->heard_end);
}

TEST_CASE("idle buffers are given back and come again", "[tls]") {
  TlsRig rig;
  REQUIRE(rig.shake_hands() == Step::done);
  REQUIRE(flushed(rig, "one") == "one");
  rig.receive_all();
  rig.stream->release_idle();
  REQUIRE(flushed(rig, "two") == "two");
  rig.peer->says("three");
  rig.give(rig.peer->output());
  REQUIRE(rig.receive_all() == "three");
}
